"use strict";
function valueOf(cell) { return cell.dataset.v === undefined ? parseFloat(cell.textContent) || 0 : +cell.dataset.v; }

// The head of a column sorts its table: numbers largest first, words in alphabetical order, once more the other way.
document.querySelectorAll(".scroll table").forEach(function (table) {
  if (!table.tHead) { return; }
  var body = table.tBodies[0];
  var heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach(function (head, column) {
    if (!head.textContent) { return; }
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () {
      var numeric = head.classList.contains("num");
      var turned = head.getAttribute("aria-sort") === (numeric ? "descending" : "ascending");
      var sign = numeric !== turned ? -1 : 1;
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      var rows = Array.from(body.rows);
      rows.sort(function (a, b) {
        var x = a.cells[column], y = b.cells[column];
        return sign * (numeric ? valueOf(x) - valueOf(y) : x.textContent.localeCompare(y.textContent));
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });
});

// A search box above each table of more than twenty rows.
document.querySelectorAll(".scroll table").forEach(function (table) {
  var rows = Array.from(table.tBodies[0].rows);
  if (rows.length <= 20) { return; }
  var label = document.createElement("label"), box = document.createElement("input"), count = document.createElement("span");
  label.className = "search";
  label.append("Search ", box, " ", count);
  box.type = "search";
  count.setAttribute("aria-live", "polite");
  var texts = rows.map(function (row) { return row.textContent.toLowerCase(); });
  box.addEventListener("input", function () {
    var words = box.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
    rows.forEach(function (row, i) {
      row.hidden = !words.every(function (word) { return texts[i].indexOf(word) >= 0; });
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = words.length ? shown + " of " + rows.length + " rows" : "";
  });
  table.closest(".scroll").before(label);
});

// The heading above an element, which names it for a screen reader.
function headingOf(element) {
  var found = "Table";
  document.querySelectorAll("h1, h2, h3").forEach(function (heading) {
    if (heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) { found = heading.textContent; }
  });
  return found;
}

// A label that no other region of the page has.
var labels = {};
function named(label) {
  labels[label] = (labels[label] || 0) + 1;
  return labels[label] > 1 ? label + " " + labels[label] : label;
}

// What scrolls takes the focus, so that the arrow keys move it.
document.querySelectorAll(".scroll, .wide, .drawing, pre").forEach(function (box) {
  if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", named(headingOf(box)));
  }
});

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

document.querySelectorAll(".layers").forEach(function (place) {
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
  function drawPicture() {
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
  window.addEventListener("resize", function () {
    if (picture.clientWidth !== width) { width = picture.clientWidth; drawPicture(); }
  });
});

function download(name, lines) {
  var cells = lines.map(function (line) {
    return line.map(function (cell) {
      var plain = cell === null || cell === undefined ? "" : String(cell);
      return /[",\n]/.test(plain) ? '"' + plain.replace(/"/g, '""') + '"' : plain;
    }).join(",");
  });
  var link = document.createElement("a");
  link.download = name + ".csv";
  link.textContent = "data as csv";
  link.setAttribute("aria-label", "data as csv: " + name.replace(/-/g, " "));
  link.href = "data:text/csv;charset=utf-8," + encodeURIComponent(cells.join("\n") + "\n");
  var line = document.createElement("p");
  line.className = "data";
  line.appendChild(link);
  return line;
}

// Charts. Their colours are those of a light page; a dark one has another for each.
var DARK = { "#ffffff": "#14181d", "#1d2530": "#e6eaee", "#5b6673": "#a9b3be", "#e3e7ec": "#2c343d", "#b8c0ca": "#5c6875",
  "#c9d0d8": "#46505b", "#a3adb8": "#7b8692", "#eef3f7": "#1f262e", "#9cc5dd": "#2f6583", "#0072b2": "#3a9fdc", "#8c510a": "#c98a4b",
  "#6a3d9a": "#a983cf", "#b15928": "#cf7d4e" };
var LEAST = 600;  // width of a chart [px]; a narrower page scrolls it
var charts = Array.from(document.querySelectorAll(".chart[data-width]"));
var dark = window.matchMedia("(prefers-color-scheme: dark)");

function figureOf(chart, isDark) {
  var told = chart.querySelector("script").textContent;
  if (isDark) { told = told.replace(/#[0-9a-f]{6}\b/g, function (colour) { return DARK[colour] || colour; }); }
  return JSON.parse(told);
}

function fitted(figure, width) {
  var layout = figure.layout, margin = layout.margin || {};
  layout.width = width;
  if (width < 900 && margin.r > 150 && layout.showlegend) {  // a legend at the right moves below
    layout.legend = Object.assign({}, layout.legend, { orientation: "h", x: 0, y: -0.12, yanchor: "top" });
    margin.r = 20;
    margin.b = (margin.b || 40) + 30 * Math.ceil(figure.data.length / 2);
    layout.height += 30 * Math.ceil(figure.data.length / 2);
  }
  var names = layout.yaxis && layout.yaxis.ticktext;
  if (width < 900 && names && margin.l > 150) {
    layout.yaxis.ticktext = names.map(function (name) { return name.length > 18 ? name.slice(0, 17) + "…" : name; });
    margin.l = 150;
  }
  return figure;
}

function draw(chart, isDark, room) {
  var figure = fitted(figureOf(chart, isDark), Math.max(LEAST, Math.min(room || chart.clientWidth, +chart.dataset.width)));
  chart.style.height = "auto";
  return Plotly.newPlot(chart.querySelector(".plot"), figure.data, figure.layout, { displayModeBar: false });
}

function rowsOf(figure) {
  var rows = [["series", "x", "y", "from", "note"]];
  figure.data.forEach(function (trace) {
    var xs = trace.x || [], ys = trace.y || [], notes = trace.hovertext || trace.text || [];
    if (trace.mode === "text") { return; }
    for (var i = 0; i < Math.max(xs.length, ys.length); i += 1) {
      var note = Array.isArray(notes) ? notes[i] : notes;
      rows.push([trace.name, xs[i], ys[i], trace.base && trace.base[i], note && note.replace(/<br>/g, "; ")]);
    }
  });
  return rows;
}

function drawAll(isDark, room) { charts.forEach(function (chart) { draw(chart, isDark, room); }); }

function start() {
  drawAll(dark.matches);
  charts.forEach(function (chart) {
    chart.tabIndex = 0;
    chart.setAttribute("role", "region");
    chart.setAttribute("aria-label", named("Chart: " + headingOf(chart)));
    chart.after(download(chart.id, rowsOf(figureOf(chart, false))));
  });
  dark.addEventListener("change", function () { drawAll(dark.matches); });
  window.addEventListener("beforeprint", function () { drawAll(false, 1120); });
  window.addEventListener("afterprint", function () { drawAll(dark.matches); });
  var width = document.body.clientWidth, waiting = 0;
  window.addEventListener("resize", function () {
    clearTimeout(waiting);
    waiting = setTimeout(function () {
      if (document.body.clientWidth !== width) { width = document.body.clientWidth; drawAll(dark.matches); }
    }, 150);
  });
}

// The library stands packed in the page; a script element that holds its text runs under the page's content policy.
var library = document.getElementById("library");
if (library && charts.length) {
  var bytes = Uint8Array.from(atob(library.textContent), function (letter) { return letter.charCodeAt(0); });
  new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text().then(function (code) {
    var script = document.createElement("script");
    script.textContent = code;
    document.head.appendChild(script);
    start();
  }).catch(function () {
    charts.forEach(function (chart) { chart.querySelector(".plot").textContent = "This browser cannot draw the chart."; });
  });
}
