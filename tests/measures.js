// What is wrong with a page as it is laid out, all of its `details` open: a list of [measure, element, text, numbers].
//   outside   a box, or the page itself, is wider than the window; what a container scrolls is inside
//   overlap   two texts share ink
//   cut       a text is longer than its box, which neither scrolls nor ends in an ellipsis with the whole text as title
//   contrast  a text against what is painted behind it (WCAG 2.2: 4.5, large text 3)
//   chart     a chart has no mark of data inside its box, or marks outside of it
(function () {
  "use strict";
  var SLACK = 1, LARGE = 24, LARGE_BOLD = 18.66, BOLD = 700;  // [px], of a font [px]
  var INK = 0.2;  // share of a line's height above and below which glyphs of a text have little ink
  var GREY = 30;  // difference of two colour channels up to which a mark is an axis or a grid rather than data
  var found = [], styles = new Map();
  var page = document.documentElement, wide = page.clientWidth;
  var SHAPES = ["path", "rect", "circle", "ellipse", "line", "polyline", "polygon"].join(", ");
  var UNSEEN = "script, style, noscript, template, option, textarea, title, desc";
  var FIELDS = "select, input:not([type=hidden], [type=range], [type=file], [type=checkbox], [type=radio])";

  function style(element) {
    if (!styles.has(element)) { styles.set(element, getComputedStyle(element)); }
    return styles.get(element);
  }

  function tell(measure, element, text, numbers) {
    var names = [];
    for (var one = element; one && one !== document.body && names.length < 3; one = one.parentElement) {
      names.unshift([one.localName + (one.id ? "#" + one.id : "")].concat(Array.from(one.classList)).join("."));
    }
    found.push([measure, names.join(" > "), text.trim().replace(/\s+/g, " ").slice(0, 60), numbers]);
  }

  function seen(element) { return element.checkVisibility({ visibilityProperty: true, opacityProperty: true }); }

  function px(value) { return Math.round(10 * value) / 10; }

  // The part of a box that its containers show; `hidden(container, axis, lost)` hears of what one that does not scroll cuts off.
  function shown(element, box, hidden) {
    var now = { left: box.left, right: box.right, top: box.top, bottom: box.bottom };
    for (var one = element; one && one !== document.body; one = one.parentElement) {
      var told = style(one), place = null;
      [["overflowX", "left", "right"], ["overflowY", "top", "bottom"]].forEach(function (axis) {
        var kind = told[axis[0]];
        if (kind === "visible" || (told.display === "inline" && one.localName !== "svg")) { return; }
        place = place || one.getBoundingClientRect();
        var lost = Math.max(place[axis[1]] - now[axis[1]], now[axis[2]] - place[axis[2]]);
        if (lost > 0 && (kind === "hidden" || kind === "clip") && hidden) { hidden(one, axis[0], lost); }
        now[axis[1]] = Math.max(now[axis[1]], place[axis[1]]);
        now[axis[2]] = Math.min(now[axis[2]], place[axis[2]]);
      });
    }
    return now.right - now.left > SLACK && now.bottom - now.top > SLACK ? now : null;
  }

  // Corners of a box in the coordinates of an SVG element, on the screen.
  function corners(element, box) {
    var to = element.getScreenCTM();
    return [[0, 0], [1, 0], [1, 1], [0, 1]].map(function (at) {
      var point = new DOMPoint(box.x + at[0] * box.width, box.y + at[1] * box.height).matrixTransform(to);
      return [point.x, point.y];
    });
  }

  function around(quad) {
    var xs = quad.map(function (p) { return p[0]; }), ys = quad.map(function (p) { return p[1]; });
    return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
  }

  function quadOf(box) { return [[box.left, box.top], [box.right, box.top], [box.right, box.bottom], [box.left, box.bottom]]; }

  // Lines of text: element, words and the quadrilateral of each; a field of a form is one by its value.
  function lines() {
    var made = [], node, walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while ((node = walker.nextNode())) {
      var element = node.parentElement;
      if (!/\S/.test(node.data) || element.closest(UNSEEN) || !seen(element)) { continue; }
      var to = element.getScreenCTM && element.getScreenCTM();
      if (to && (Math.abs(to.b) > 1e-6 || Math.abs(to.c) > 1e-6)) {
        made.push({ node: node, element: element, text: node.data, quad: corners(element, element.getBBox()) });
        continue;
      }
      var range = document.createRange();
      range.selectNodeContents(node);
      Array.from(range.getClientRects()).forEach(function (box) {
        if (box.width > 0 && box.height > 0) { made.push({ node: node, element: element, text: node.data, quad: quadOf(box) }); }
      });
    }
    document.querySelectorAll(FIELDS).forEach(function (field) {
      var text = field.localName === "select" ? (field.selectedOptions[0] || { text: "" }).text : field.value || field.placeholder;
      if (!text || !seen(field)) { return; }
      made.push({ node: field, element: field, text: text, quad: quadOf(field.getBoundingClientRect()), field: true });
    });
    return made;
  }

  function checkOutside() {
    if (page.scrollWidth > wide) { tell("outside", page, "", "the page is " + page.scrollWidth + " px wide, its window " + wide); }
    var told = new Set();
    document.body.querySelectorAll("*:not(svg *)").forEach(function (element) {
      if (told.has(element.parentElement)) { told.add(element); }
      if (!seen(element) || told.has(element)) { return; }
      var box = element.getBoundingClientRect();
      var now = box.width > 0 && box.height > 0 && shown(element.parentElement, box);
      if (now && (now.left < -SLACK || now.right > wide + SLACK || now.top + scrollY < -SLACK)) {
        told.add(element);
        tell("outside", element, element.textContent,
          "from " + px(now.left) + " to " + px(now.right) + " px of " + wide + ", top " + px(now.top + scrollY));
      }
    });
  }

  function isWhole(box, text) {  // what is cut is announced by an ellipsis, and the whole is told
    var told = (box.title || "") + (box.getAttribute("aria-label") || "");
    return style(box).textOverflow === "ellipsis" && told.indexOf(text.trim()) >= 0;
  }

  function checkCut(all) {
    var spilled = new Set(), pen = document.createElement("canvas").getContext("2d");
    all.forEach(function (line) {
      var element = line.element, told = style(element), box = around(line.quad);
      if (line.field) {
        pen.font = told.font;
        var room = element.clientWidth - parseFloat(told.paddingLeft) - parseFloat(told.paddingRight);
        var needs = pen.measureText(line.text).width;
        if (needs > room + SLACK && !isWhole(element, line.text)) { tell("cut", element, line.text, "needs " + px(needs) + " px, has " + px(room)); }
        return;
      }
      shown(element, box, function (container, axis, lost) {
        var allowed = axis === "overflowY" ? INK * (box.bottom - box.top) : SLACK;
        if (lost > allowed && !isWhole(container, line.text)) {
          tell("cut", element, line.text, px(lost) + " px hidden by " + container.localName + "." + container.classList);
        }
      });
      while (element && style(element).display === "inline") { element = element.parentElement; }
      if (element === document.body || element.closest("svg") || spilled.has(element)) { return; }
      if (style(element).overflowX !== "visible") { return; }
      spilled.add(element);
      var over = [element.scrollWidth - element.clientWidth, element.scrollHeight - element.clientHeight];
      if (over[0] > SLACK || over[1] > INK * (box.bottom - box.top)) {
        tell("cut", element, line.text, "needs " + element.scrollWidth + " x " + element.scrollHeight + " px, has " +
          element.clientWidth + " x " + element.clientHeight);
      }
    });
  }

  // The part of a line that has ink.
  function inked(quad) {
    var across = [quad[1][0] - quad[0][0], quad[1][1] - quad[0][1]], down = [quad[3][0] - quad[0][0], quad[3][1] - quad[0][1]];
    var length = Math.hypot(across[0], across[1]) || 1, side = Math.min(SLACK / length, 0.4);
    return [[side, INK], [1 - side, INK], [1 - side, 1 - INK], [side, 1 - INK]].map(function (at) {
      return [quad[0][0] + at[0] * across[0] + at[1] * down[0], quad[0][1] + at[0] * across[1] + at[1] * down[1]];
    });
  }

  // How far two convex quadrilaterals enter each other [px] (theorem of the separating axis); at most 0 where they are apart.
  function depth(one, other) {
    var least = Infinity;
    [one, other].forEach(function (quad) {
      for (var i = 0; i < 2; i += 1) {
        var x = quad[i + 1][1] - quad[i][1], y = quad[i][0] - quad[i + 1][0], length = Math.hypot(x, y) || 1;
        var ends = [one, other].map(function (each) {
          var at = each.map(function (p) { return (p[0] * x + p[1] * y) / length; });
          return [Math.min(...at), Math.max(...at)];
        });
        least = Math.min(least, ends[0][1] - ends[1][0], ends[1][1] - ends[0][0]);
      }
    });
    return least;
  }

  function checkOverlap(all) {
    var boxes = all.map(function (line) {
      var quad = line.field ? line.quad : inked(line.quad), box = shown(line.element, around(quad));
      return box && { line: line, quad: quad, box: box };
    }).filter(Boolean).sort(function (a, b) { return a.box.top - b.box.top; });
    boxes.forEach(function (one, i) {
      for (var j = i + 1; j < boxes.length && boxes[j].box.top < one.box.bottom; j += 1) {
        var other = boxes[j];
        if (one.line.node === other.line.node || one.box.left >= other.box.right || other.box.left >= one.box.right) { continue; }
        var deep = depth(one.quad, other.quad);
        if (deep > SLACK) {
          tell("overlap", other.line.element, other.line.text, px(deep) + " px into '" + one.line.text.trim().slice(0, 40) + "'");
        }
      }
    });
  }

  function colour(words) {  // red, green, blue of 255, and opacity
    var parts = /^rgba?\(/.test(words) ? words.match(/[\d.]+/g).map(Number) : [0, 0, 0, 0];
    return parts.length === 3 ? parts.concat(1) : parts;
  }

  function over(top, opacity, below) {
    var share = top[3] * opacity;
    return [0, 1, 2].map(function (i) { return top[i] * share + below[i] * (1 - share); });
  }

  function luminance(parts) {
    var linear = parts.map(function (value) {
      var part = value / 255;
      return part <= 0.04045 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }

  function opacityOf(element) {
    var share = 1;
    for (var one = element; one; one = one.parentElement) { share *= +style(one).opacity; }
    return share;
  }

  // What is painted behind a point of a text: grounds of its containers, then shapes of drawings that come before it.
  function behind(element, point, shapes) {
    var chain = [], dark = /dark/.test(style(page).colorScheme) && matchMedia("(prefers-color-scheme: dark)").matches;
    for (var one = element; one; one = one.parentElement) { chain.unshift(one); }
    var now = chain.reduce(function (below, container) {
      return container.closest("svg *") ? below : over(colour(style(container).backgroundColor), 1, below);
    }, dark ? [18, 18, 18] : [255, 255, 255]);
    if (!element.closest("svg")) { return now; }
    shapes.forEach(function (shape) {
      var box = shape.box;
      if (point[0] < box.left || point[0] > box.right || point[1] < box.top || point[1] > box.bottom) { return; }
      if (!(shape.element.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)) { return; }
      var local = new DOMPoint(point[0], point[1]).matrixTransform(shape.element.getScreenCTM().inverse());
      if (shape.element.isPointInFill(local)) { now = over(shape.fill, shape.opacity, now); }
    });
    return now;
  }

  function checkContrast(all) {
    var shapes = Array.from(document.querySelectorAll("svg :is(" + SHAPES + ")")).filter(seen).map(function (element) {
      var told = style(element), fill = colour(told.fill);
      return { element: element, box: element.getBoundingClientRect(), fill: fill, opacity: +told.fillOpacity * opacityOf(element) };
    }).filter(function (shape) { return shape.fill[3] * shape.opacity > 0; });
    var told = new Set();
    all.forEach(function (line) {
      var element = line.element, own = style(element), drawn = Boolean(element.closest("svg"));
      if (told.has(line.node) || element.closest(":disabled")) { return; }
      var size = parseFloat(own.fontSize), least = size >= LARGE || (size >= LARGE_BOLD && +own.fontWeight >= BOLD) ? 3 : 4.5;
      var words = line.field && !element.value ? getComputedStyle(element, "::placeholder") : own;
      var ink = colour(drawn ? own.fill : words.color), share = opacityOf(element) * (drawn ? +own.fillOpacity : 1), quad = line.quad;
      (drawn ? [0.1, 0.5, 0.9] : [0.5]).some(function (at) {
        var point = [0, 1].map(function (i) {
          return (1 - at) * (quad[0][i] + quad[3][i]) / 2 + at * (quad[1][i] + quad[2][i]) / 2;
        });
        var ground = behind(element, point, shapes), top = over(ink, share, ground);
        var pair = [luminance(top), luminance(ground)].sort(function (a, b) { return a - b; });
        var ratio = (pair[1] + 0.05) / (pair[0] + 0.05);
        if (ratio >= least) { return false; }
        told.add(line.node);
        tell("contrast", element, line.text,
          ratio.toFixed(2) + " of " + least + ": rgb " + top.map(Math.round) + " on " + ground.map(Math.round));
        return true;
      });
    });
  }

  function isData(parts) { return parts[3] > 0 && Math.max(...parts.slice(0, 3)) - Math.min(...parts.slice(0, 3)) > GREY; }

  function within(box, room) {
    return box.left >= room.left - SLACK && box.right <= room.right + SLACK && box.top >= room.top - SLACK &&
      box.bottom <= room.bottom + SLACK;
  }

  // Marks of data of a chart, legends apart: those inside its drawing, and those outside that no clip hides.
  function checkCharts() {
    document.querySelectorAll("svg:not(svg svg)").forEach(function (chart) {
      if (!seen(chart)) { return; }
      var inside = 0, outside = [];
      chart.querySelectorAll(SHAPES).forEach(function (shape) {
        var box = shape.getBoundingClientRect();
        if (!seen(shape) || box.width + box.height === 0 || shape.closest("defs, clipPath, .legend")) { return; }
        if (!isData(colour(style(shape).fill)) && !isData(colour(style(shape).stroke))) { return; }
        if (within(box, shape.ownerSVGElement.getBoundingClientRect())) {
          inside += 1;
        } else if (!shape.closest("[clip-path]")) { outside.push(shape); }
      });
      var name = (chart.querySelector("svg > title") || document.createElement("p")).textContent;
      if (!inside) { tell("chart", chart, name, "no mark of data in " + chart.clientWidth + " x " + chart.clientHeight + " px"); }
      if (outside.length) { tell("chart", outside[0], name, outside.length + " marks outside of the drawing"); }
    });
  }

  document.querySelectorAll("details").forEach(function (one) { one.open = true; });
  return new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done); }); }).then(function () {
    var all = lines();
    checkOutside();
    checkCut(all);
    checkOverlap(all);
    checkContrast(all);
    checkCharts();
    return found;
  });
})()
