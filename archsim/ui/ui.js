"use strict";
// A change of a control fetches the result and keeps the state in the address.
var form = document.getElementById("state"), result = document.getElementById("result"), said = document.getElementById("said");
var waiting = 0, running = null;

function query() {
  var kept = new URLSearchParams();
  new FormData(form).forEach(function (value, name) { if (String(value).trim()) { kept.append(name, String(value).trim()); } });
  return kept.toString();
}

function refresh() {
  var asked = query();
  if (running) { running.abort(); }
  running = new AbortController();
  window.history.replaceState(null, "", "/?" + asked);
  result.setAttribute("aria-busy", "true");
  fetch("/result?" + asked, { signal: running.signal }).then(function (answer) {
    var plain = (answer.headers.get("Content-Type") || "").indexOf("text/html") !== 0;
    return answer.text().then(function (body) { return { body: body, plain: plain }; });
  }).then(function (told) {
    if (told.plain) { result.textContent = told.body; } else { result.innerHTML = told.body; }  // HTML has its names escaped
    result.setAttribute("aria-busy", "false");
    reachable();
    var latency = result.querySelector(".big"), wrong = result.querySelector("[role=alert]");
    said.textContent = wrong ? "" : latency ? "Latency " + latency.textContent : "";
  }).catch(function (error) {
    if (error.name !== "AbortError") { result.textContent = "The server does not answer: is `archsim ui` still running?"; }
  });
}

// What scrolls takes the focus, so that the arrow keys move it.
function reachable() {
  result.querySelectorAll(".scroll, .wide, pre").forEach(function (box, i) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "Table " + (i + 1));
    }
  });
}

function later() { clearTimeout(waiting); waiting = setTimeout(refresh, 30); }

function written(value, data) {
  if (data.whole === "yes") { return Math.round(value) + (data.unit ? " " + data.unit : ""); }
  var scales = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"], [1e-12, "p"]];
  var scale = data.prefixes === "yes" ? scales.find(function (one) { return value >= one[0]; }) || scales[9] : [1, ""];
  return +(value / scale[0]).toPrecision(4) + (data.unit ? " " + scale[1] + data.unit : "");
}

form.addEventListener("input", function (event) {
  var moved = event.target;
  if (moved.type === "range") {
    var low = +moved.dataset.low, high = +moved.dataset.high;
    var value = low * Math.pow(high / low, +moved.value / +moved.max);
    var told = written(value, moved.dataset);
    moved.parentNode.querySelector("input[type=text]").value = told;
    moved.setAttribute("aria-valuetext", told);
  }
  if (moved.name !== "hw") { later(); }
});

form.addEventListener("change", function (event) {
  if (event.target.name !== "hw") { return; }
  form.querySelectorAll(".knob input[type=text]").forEach(function (box) { box.value = ""; });  // values are those of the device
  form.querySelectorAll("select[name=stack], select[name=precision]").forEach(function (box) { box.value = ""; });
  form.querySelectorAll("input[type=hidden]").forEach(function (box) { if (box.name !== "pin") { box.remove(); } });
  window.location.assign("/?" + query());
});

form.addEventListener("submit", function (event) { event.preventDefault(); refresh(); });

reachable();
