"use strict";
// A change of a control fetches the result and keeps the state in the address.
var form = document.getElementById("state"), result = document.getElementById("result"), said = document.getElementById("said");
var page = form.getAttribute("action"), drop = document.getElementById("drop");
var drawing = 0, running = null;

function query() {
  var kept = new URLSearchParams();
  new FormData(form).forEach(function (value, name) { if (String(value).trim()) { kept.append(name, String(value).trim()); } });
  return kept.toString();
}

// One request at a time: what changes meanwhile is asked for when the answer has come, so that none of a long drag is in vain.
function refresh() {
  var asked = query();
  result.setAttribute("aria-busy", "true");
  if (running !== null) { return; }
  running = asked;
  fetch(page.replace(/\/$/, "") + "/result?" + asked).then(function (answer) {
    var plain = (answer.headers.get("Content-Type") || "").indexOf("text/html") !== 0;
    return answer.text().then(function (body) { return { body: body, plain: plain }; });
  }).then(function (told) {
    var tree = result.querySelector(".layers"), words = (result.querySelector("input[type=search]") || {}).value;
    var seen = tree && { shown: tree.shown, height: tree.offsetHeight, near: near(tree) };
    if (told.plain) { result.textContent = told.body; } else { result.innerHTML = told.body; }  // HTML has its names escaped
    prepare(seen, words);
    again(asked);
    var latency = result.querySelector(".cards div"), wrong = result.querySelector("[role=alert]");
    say(wrong || !latency ? "" : latency.querySelector("dt").textContent + " " + latency.querySelector(".big").textContent);
  }).catch(function () {
    result.textContent = "The server does not answer: is `archsim ui` still running?";
    again(asked);
  });
}

function again(asked) {
  running = null;
  if (query() !== asked) { refresh(); return; }
  window.history.replaceState(null, "", page + "?" + asked);
  result.setAttribute("aria-busy", "false");
}

function say(words) { said.textContent = words; }

function near(box) {
  var place = box.getBoundingClientRect();
  return place.bottom > 0 && place.top < window.innerHeight;
}

// Tables, drawings and the flame graph of a result, which shows the block and the words that the one before it showed. What is
// not in the window is drawn after what is.
function prepare(seen, words) {
  var place = result.querySelector(".layers");
  clearTimeout(drawing);
  if (place && seen && !seen.near) {
    place.style.minHeight = seen.height + "px";
    place.shown = seen.shown;
    drawing = setTimeout(function () {
      drawTree(place, seen);
      place.style.minHeight = "";
    }, 100);
  } else if (place) {
    drawTree(place, seen);
  }
  prepareTables(result);
  var box = result.querySelector("input[type=search]");
  if (box && words) {
    box.value = words;
    box.dispatchEvent(new Event("input"));
  }
}

function written(value, data) {
  if (data.whole === "yes") { return Math.round(value) + (data.unit ? " " + data.unit : ""); }
  var scales = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"], [1e-12, "p"]];
  var scale = data.prefixes === "yes" ? scales.find(function (one) { return value >= one[0]; }) || scales[9] : [1, ""];
  return +(value / scale[0]).toPrecision(4) + (data.unit ? " " + scale[1] + data.unit : "");
}

// Where the slider of a value that was typed belongs: "51.2 GB/s", "8".
function slid(text, slider) {
  var data = slider.dataset, found = /^\s*([0-9.]+(?:e[+-]?\d+)?)\s*(.*?)\s*$/i.exec(text);
  var scale = found && { P: 1e15, T: 1e12, G: 1e9, M: 1e6, k: 1e3, m: 1e-3, u: 1e-6, n: 1e-9, p: 1e-12 }[found[2].charAt(0)];
  var value = found && +found[1] * (scale && found[2] === found[2].charAt(0) + data.unit ? scale : 1);
  if (!(value > 0)) { return; }
  var share = Math.log(value / +data.low) / Math.log(+data.high / +data.low);
  slider.value = Math.round(+slider.max * Math.min(Math.max(share, 0), 1));
  slider.setAttribute("aria-valuetext", text);
}

form.addEventListener("input", function (event) {
  var moved = event.target;
  if (moved.type === "file") { return; }
  if (moved.type === "range") {
    var low = +moved.dataset.low, high = +moved.dataset.high;
    var value = low * Math.pow(high / low, +moved.value / +moved.max);
    var told = written(value, moved.dataset);
    moved.parentNode.querySelector("input[type=text]").value = told;
    moved.setAttribute("aria-valuetext", told);
  } else {
    var beside = moved.parentNode.querySelector("input[type=range]");
    if (beside) { slid(moved.value || moved.placeholder, beside); }
  }
  if (!moved.dataset.draws) { refresh(); }
});

// What the form itself depends on loads the page anew.
form.addEventListener("change", function (event) {
  if (event.target.type === "file") { send(event.target.files[0]); }
  if (event.target.dataset.draws) { changed(event.target.name); }
});

// Values of the device are those of another one, sizes and layers those of another network.
function changed(name) {
  if (name === "hw") {
    form.querySelectorAll(".knob input[type=text]").forEach(function (box) { box.value = ""; });
    form.querySelectorAll("select[name=stack], select[name=precision]").forEach(function (box) { box.value = ""; });
    form.querySelectorAll("input[type=hidden]").forEach(function (box) { if (box.name !== "pin") { box.remove(); } });
  }
  if (name === "net") {
    form.querySelectorAll("[name=layer], [name=bind], [name=seq_len]").forEach(function (box) { box.value = ""; });
  }
  window.location.assign(page + "?" + query());
}

form.addEventListener("submit", function (event) { event.preventDefault(); refresh(); });

// A file of the user's own: the server keeps it, and says by which name.
function send(file) {
  if (!file) { return; }
  if (file.size > +drop.dataset.most) {
    say(file.name + " has " + Math.round(file.size / 1048576) + " MiB; at most " + drop.dataset.most / 1048576 +
      " MiB are taken here: `archsim whatif --net FILE` reads larger ones");
    return;
  }
  say("Reading " + file.name);
  fetch("/upload?name=" + encodeURIComponent(file.name), { method: "POST", body: file }).then(function (answer) {
    return answer.text().then(function (body) {
      if (!answer.ok) { say("Not taken: " + body); return; }
      var found = new URLSearchParams(body).entries().next().value;
      var select = form.querySelector("select[name=" + found[0] + "]"), option = document.createElement("option");
      option.value = found[1];
      select.appendChild(option);
      select.value = found[1];
      changed(found[0]);
    });
  }).catch(function () { say("The server does not answer: is `archsim ui` still running?"); });
}

drop.hidden = false;
["dragover", "dragleave", "drop"].forEach(function (kind) {
  document.addEventListener(kind, function (event) {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop") { send(event.dataTransfer.files[0]); }
  });
});

prepare(null, "");
