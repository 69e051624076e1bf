"use strict";
prepareTables(document);
document.querySelectorAll(".layers").forEach(function (place) { drawTree(place); });

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

// One point of a sweep: its values and outputs beside those of the device as it is.
function openMachine(machine, number) {
  var told = JSON.parse(machine.querySelector("script").textContent);
  var row = told.rows[number], base = told.bases[row[1]] || [], data = machine.querySelector("script");
  machine.textContent = "";
  machine.append(element("h3", "", "Machine " + row[0] + ": " + row[2]));
  var table = element("table", ""), head = table.createTHead().insertRow();
  ["", "this machine", "as it is", "ratio"].forEach(function (title) {
    var cell = document.createElement(title ? "th" : "td");
    cell.textContent = title;
    if (title) { cell.scope = "col"; }
    head.appendChild(cell);
  });
  var body = table.createTBody();
  told.names.forEach(function (name, i) {
    var line = body.insertRow();
    [name, row[3][i], base[i] || "-", row[4][i]].forEach(function (words) { line.insertCell().textContent = words; });
    line.className = i < told.knobs ? "varied" : "";
  });
  var wide = element("div", "wide");
  wide.appendChild(table);
  machine.append(wide, data);
}

document.querySelectorAll(".machine").forEach(function (machine) { machine.setAttribute("aria-live", "polite"); });
document.querySelectorAll("button.opens").forEach(function (button) {
  button.addEventListener("click", function () {
    var machine = document.querySelector('.machine[data-chart="' + button.dataset.chart + '"]');
    openMachine(machine, +button.dataset.row);
    machine.scrollIntoView({ block: "nearest" });
  });
});

// Charts. Their colours are those of a light page; a dark one has another for each.
var DARK = { "#ffffff": "#14181d", "#1d2530": "#e6eaee", "#5b6673": "#a9b3be", "#e3e7ec": "#2c343d", "#b8c0ca": "#5c6875",
  "#c9d0d8": "#46505b", "#a3adb8": "#7b8692", "#eef3f7": "#1f262e", "#9cc5dd": "#2f6583", "#0072b2": "#3a9fdc", "#8c510a": "#c98a4b",
  "#6a3d9a": "#a983cf", "#b15928": "#cf7d4e" };
var LEAST = 350;  // width of a chart [px]; a narrower page scrolls it
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
  if (width < 600) { narrowed(layout, margin, width); }
  return figure;
}

// On a phone a legend in the chart moves below it, and marks of an axis keep apart.
function narrowed(layout, margin, width) {
  var legend = layout.legend || {}, axis = layout.xaxis || {};
  if (layout.showlegend && legend.y === 0) {
    layout.legend = Object.assign({}, legend, { orientation: "h", x: 0, xanchor: "left", y: 0, yanchor: "top" });
    margin.b = (margin.b || 40) + 30;
    layout.height += 30;
  }
  if (!axis.ticktext || axis.ticktext.length < 2) { return; }
  var longest = Math.max.apply(null, axis.ticktext.map(function (one) { return one.length; }));
  var most = Math.max(Math.floor((width - (margin.l || 0) - (margin.r || 0)) / (7 * longest + 12)), 1);
  var step = Math.ceil(axis.ticktext.length / most), first = Math.max(axis.tickvals.indexOf(0), 0) % step;
  var stays = function (_, i) { return i % step === first; };
  axis.tickvals = axis.tickvals.filter(stays);
  axis.ticktext = axis.ticktext.filter(stays);
}

function draw(chart, isDark, room) {
  var figure = fitted(figureOf(chart, isDark), Math.max(LEAST, Math.min(room || chart.clientWidth, +chart.dataset.width)));
  var plot = chart.querySelector(".plot");
  chart.style.height = "auto";
  return Plotly.newPlot(plot, figure.data, figure.layout, { displayModeBar: false }).then(function () {
    var machine = document.querySelector('.machine[data-chart="' + chart.id + '"]');
    if (!machine) { return; }
    plot.removeAllListeners("plotly_click");
    plot.on("plotly_click", function (event) {
      if (event.points[0].customdata >= 0) { openMachine(machine, event.points[0].customdata); }
    });
  });
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
