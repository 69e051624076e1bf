"use strict";
// A quantity with its unit, three digits.
function amount(value, unit) {
  var scales = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"], [1e-12, "p"]];
  var scale = scales.find(function (one) { return value >= 0.9995 * one[0]; }) || scales[8];
  return value > 0 ? +(value / scale[0]).toPrecision(3) + " " + scale[1] + unit : "0 " + unit;
}

// Layers folded by block: [name, seconds, joules, bound] of an op, [name, children] of a group.
function block(told) {
  if (told.length > 2) { return { name: told[0], s: told[1], j: told[2], bound: told[3], inner: [], ops: 1 }; }
  var made = { name: told[0], s: 0, j: 0, bound: "", inner: told[1].map(block), ops: 0 }, by = {};
  made.inner.forEach(function (child) {
    made.s += child.s;
    made.j += child.j;
    made.ops += child.ops;
    child.up = made;
    by[child.bound] = (by[child.bound] || 0) + child.s;
  });
  made.bound = Object.keys(by).sort(function (a, b) { return by[b] - by[a]; })[0] || "";
  return made;
}

function element(tag, style, content) {
  var made = document.createElement(tag);
  made.className = style;
  if (content !== undefined) { made.textContent = content; }
  return made;
}

// Black or white, whichever is easier to read on a colour.
function inkOn(colour) {
  var parts = [1, 3, 5].map(function (i) { return parseInt(colour.slice(i, i + 2), 16) / 255; }).map(function (part) {
    return part <= 0.04045 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4);
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] > 0.179 ? "#000000" : "#ffffff";
}

// A flame graph with a list below it, in a place that holds the tree. `was` is what another place showed, to begin with the same.
function drawTree(place, was) {
  var told = JSON.parse(place.querySelector("script").textContent);
  var root = block(["whole network", told.tree]), key = "s", top = root, DEPTH = 6;
  var picture = element("div", "icicle"), list = element("div", "tree"), line = element("p", "choice");
  picture.setAttribute("role", "group");
  picture.setAttribute("aria-label", "Blocks by width");
  function said(one) {
    var share = { s: one.s / told.whole_s, j: one.j / told.whole_j };
    return amount(one[key], key === "s" ? "s" : "J") + " · " + (100 * share[key]).toFixed(1) + " %";
  }
  function cell(one, left, width, depth, room) {
    var opens = one.inner.length > 0 || (one === top && one.up);
    var made = element(opens ? "button" : "div", "cell", room > 36 ? one.name : "");
    made.style.cssText = "left:" + left + "%;width:" + width + "%;top:" + 25 * depth + "px;background:" + told.colours[one.bound] +
      ";color:" + inkOn(told.colours[one.bound] || "#ffffff") + ";padding:0 " + (room > 36 ? 4 : 0) + "px";
    made.title = one.name + ": " + said(one) + ", " + one.bound + (one.ops > 1 ? ", " + one.ops + " ops" : "");
    if (opens) {
      made.type = "button";
      made.setAttribute("aria-label", made.title + (one === top && one.up ? ", back" : ", open"));
      made.addEventListener("click", function () {
        top = one === top && one.up ? one.up : one;
        drawPicture();
        var first = picture.querySelector("button");
        if (first) { first.focus(); }
      });
    }
    picture.appendChild(made);
  }
  if (was && was.shown) {
    key = was.shown.key;
    was.shown.path.forEach(function (name) { top = top.inner.find(function (one) { return one.name === name; }) || top; });
  }
  function drawPicture() {
    place.shown = { key: key, path: [] };
    for (var one = top; one.up; one = one.up) { place.shown.path.unshift(one.name); }
    var whole = picture.clientWidth || 1120, deepest = 0;
    picture.textContent = "";
    (function row(one, left, width, depth) {
      var room = whole * width / 100;
      if (room < 1.5 || depth >= DEPTH) { return; }
      deepest = Math.max(deepest, depth);
      cell(one, left, width, depth, room);
      one.inner.forEach(function (child) {
        var own = one[key] > 0 ? width * child[key] / one[key] : 0;
        row(child, left, own, depth + 1);
        left += own;
      });
    })(top, 0, 100, 0);
    picture.style.height = 25 * (deepest + 1) + "px";
  }
  function entry(one, most) {
    var made = element(one.inner.length ? "details" : "div", "entry");
    var head = one.inner.length ? made.appendChild(document.createElement("summary")) : made;
    head.appendChild(element("span", "name", one.name));
    var bar = head.appendChild(element("span", "bar")), fill = bar.appendChild(element("i", ""));
    fill.style.cssText = "width:" + (most > 0 ? 100 * one[key] / most : 0) + "%;background:" + told.colours[one.bound];
    head.appendChild(element("span", "amount", said(one)));
    head.appendChild(element("span", "bound", one.bound));
    if (one.inner.length) {  // children are made when they are first seen
      made.addEventListener("toggle", function () { if (made.children.length < 2) { fillWith(made, one); } });
    }
    return made;
  }
  function fillWith(parent, one) {
    var inner = parent.appendChild(element("div", "inner"));
    var most = Math.max.apply(null, one.inner.map(function (child) { return child[key]; }));
    one.inner.forEach(function (child) { inner.appendChild(entry(child, most)); });
  }
  function drawAgain() {
    drawPicture();
    list.textContent = "";
    fillWith(list, root);
  }
  [["s", "time"], ["j", "energy"]].forEach(function (pair) {
    var button = line.appendChild(element("button", "", pair[1]));
    button.type = "button";
    button.setAttribute("aria-pressed", String(pair[0] === key));
    button.addEventListener("click", function () {
      key = pair[0];
      line.querySelectorAll("button").forEach(function (one) { one.setAttribute("aria-pressed", String(one === button)); });
      drawAgain();
    });
  });
  place.append(line, picture, list);
  drawAgain();
  var width = picture.clientWidth;
  new ResizeObserver(function () {
    if (picture.clientWidth !== width) { width = picture.clientWidth; drawPicture(); }
  }).observe(place);
}
