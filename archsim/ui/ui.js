"use strict";
// A change of a control fetches the result and keeps the state in the address.
var form = document.getElementById("state"), result = document.getElementById("result"), said = document.getElementById("said");
var page = form.getAttribute("action"), drop = document.getElementById("drop");
var drawing = 0, running = null, typing = 0, last = "";  // timers, what is asked for, and the field that was changed last

function query() {
  var kept = new URLSearchParams();
  new FormData(form).forEach(function (value, name) { if (String(value).trim()) { kept.append(name, String(value).trim()); } });
  return kept.toString();
}

// One request at a time: what changes meanwhile is asked for when the answer has come, so that none of a long drag is in vain.
function refresh() {
  var asked = query();
  clearTimeout(typing);
  result.setAttribute("aria-busy", "true");
  if (running !== null) { return; }
  running = asked;
  fetch(page.replace(/\/$/, "") + "/result?" + asked).then(function (answer) {
    return answer.text().then(function (body) {
      if (answer.ok) { show(body); return; }
      var html = (answer.headers.get("Content-Type") || "").indexOf("text/html") === 0, told = document.createElement("template");
      told.innerHTML = html ? body : "";  // names of files are escaped in it
      var alert = told.content.querySelector("[role=alert]");
      refuse(alert ? alert.querySelector("span").textContent : body, alert ? alert.dataset.field || last : "");
    });
  }).catch(function () { refuse("The server does not answer: is `archsim ui` still running?", ""); }).then(function () {
    running = null;
    if (query() !== asked) { refresh(); return; }
    window.history.replaceState(null, "", page + "?" + asked);
    result.setAttribute("aria-busy", "false");
  });
}

function show(body) {
  var tree = result.querySelector(".layers"), words = (result.querySelector("input[type=search]") || {}).value;
  var seen = tree && { shown: tree.shown, height: tree.offsetHeight, near: near(tree) };
  accept();
  result.innerHTML = body;
  prepare(seen, words);
}

// A message at the field that it is about, or above the result; the last result stays, grey.
function refuse(message, field) {
  var box = field && form.querySelector("[name='" + CSS.escape(field) + "']"), place = box && box.closest(".field, .knob");
  var note = element("p", "wrong", message), first = result.querySelector("[role=alert] span");
  accept();
  note.id = "wrong";
  note.setAttribute("role", "alert");
  if (first) { first.textContent = message; } else { document.body.classList.add("stale"); }
  if (place) {
    box = box.box || box;
    box.setAttribute("aria-invalid", "true");
    box.setAttribute("aria-describedby", "wrong");
    for (var around = place.closest("details"); around; around = around.parentNode.closest("details")) { around.open = true; }
  }
  if (place || !first) { (place || document.getElementById("problem")).appendChild(note); }
  if (place) { place.scrollIntoView({ block: "nearest" }); }
}

function accept() {
  document.body.classList.remove("stale");
  document.querySelectorAll(".wrong").forEach(function (one) { one.remove(); });
  form.querySelectorAll("[aria-invalid]").forEach(function (box) {
    box.removeAttribute("aria-invalid");
    box.removeAttribute("aria-describedby");
  });
}

// The totals in short: what a screen reader says, and what stays in sight on a phone.
function strip() {
  said.textContent = "";
  result.querySelectorAll(".cards div").forEach(function (card) {
    var cell = said.appendChild(element("span", "")), notes = card.querySelectorAll(".note");
    cell.append(element("b", "", card.querySelector(".big").textContent), " ",
      element("span", "", notes[0].textContent.split(",")[0]), " ", element("span", "", notes[1].textContent.split(": ")[1] || ""), " ");
  });
}

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
  strip();
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
  if (!found || !found[2].endsWith(data.unit)) { return; }
  var scale = { "": 1, P: 1e15, T: 1e12, G: 1e9, M: 1e6, k: 1e3, m: 1e-3, u: 1e-6, n: 1e-9, p: 1e-12, Ki: 1024, Mi: 1048576,
    Gi: 1073741824, Ti: 1099511627776 }[found[2].slice(0, found[2].length - data.unit.length)];
  var value = +found[1] * scale;
  if (!(value > 0)) { return; }
  var share = Math.log(value / +data.low) / Math.log(+data.high / +data.low);
  slider.value = Math.round(+slider.max * Math.min(Math.max(share, 0), 1));
  slider.setAttribute("aria-valuetext", text);
}

form.addEventListener("input", function (event) {
  var moved = event.target;
  if (moved.type === "file" || moved.dataset.draws) { return; }
  if (moved.type === "range") {
    var low = +moved.dataset.low, high = +moved.dataset.high;
    var value = low * Math.pow(high / low, +moved.value / +moved.max);
    var told = written(value, moved.dataset), box = moved.closest(".knob").querySelector("input[type=text]");
    box.value = told;
    last = box.name;
    moved.setAttribute("aria-valuetext", told);
    refresh();
    return;
  }
  last = moved.name;
  var beside = moved.parentNode.querySelector("input[type=range]");
  if (beside) { slid(moved.value || moved.placeholder, beside); }
  result.setAttribute("aria-busy", "true");
  clearTimeout(typing);
  typing = setTimeout(refresh, moved.type === "text" ? 300 : 0);  // a word is not wrong before it is whole [ms]
});

// What the form itself depends on loads the page anew.
form.addEventListener("change", function (event) {
  if (event.target.type === "file") { send(event.target.files[0]); }
  if (event.target.dataset.draws) { changed(event.target.name); }
});

// A long list becomes a box to search in, by words of a name, its maker and its year (WAI-ARIA's pattern of a combobox).
function combobox(select) {
  var id = select.id, box = element("input", "combo"), list = element("div", "list"), shown = [], active = 0;
  var known = Array.from(select.options).map(function (option) {
    var group = option.parentNode.label || "", words = (group + " " + option.text + " " + option.value).toLowerCase();
    return { group: group, text: option.text, value: option.value, words: words, bare: words.replace(/[^a-z0-9]/g, "") };
  });
  function set(one, marks) { Object.keys(marks).forEach(function (name) { one.setAttribute(name, marks[name]); }); return one; }
  function open(words) {
    var parts = words.toLowerCase().split(/\s+/), bare = words.toLowerCase().replace(/[^a-z0-9]/g, ""), group = "", into = list;
    list.textContent = "";
    shown = known.filter(function (one) {
      return parts.every(function (part) { return one.words.indexOf(part) >= 0; }) || (bare && one.bare.indexOf(bare) >= 0);
    }).map(function (one, i) {
      if (one.group !== group) {
        group = one.group;
        into = set(list.appendChild(element("div", "")), { role: "group", "aria-label": group });
        set(into.appendChild(element("div", "quiet", group)), { "aria-hidden": "true" });
      }
      var made = set(into.appendChild(element("div", "option", one.text)), { role: "option", id: id + "-" + i,
        "aria-selected": String(one.value === select.value) });
      made.value = one.value;
      return made;
    });
    if (!shown.length) { list.appendChild(element("div", "quiet", "Nothing shipped is called so")); }
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
    move(words ? 0 : shown.findIndex(function (one) { return one.value === select.value; }));
  }
  function move(to) {
    if (shown[active]) { shown[active].classList.remove("active"); }
    active = Math.max(0, Math.min(to, shown.length - 1));
    box.removeAttribute("aria-activedescendant");
    if (!shown[active]) { return; }
    shown[active].classList.add("active");
    shown[active].scrollIntoView({ block: "nearest" });
    box.setAttribute("aria-activedescendant", shown[active].id);
  }
  function close() {
    list.hidden = true;
    set(box, { "aria-expanded": "false" }).removeAttribute("aria-activedescendant");
    box.value = box.title = select.selectedOptions.length ? select.selectedOptions[0].text : "";
  }
  function choose(one) {
    var other = one && one.value !== select.value;
    if (one) { select.value = one.value; }
    close();
    if (other) { ["input", "change"].forEach(function (kind) { select.dispatchEvent(new Event(kind, { bubbles: true })); }); }
  }
  set(box, { type: "text", id: id, role: "combobox", "aria-autocomplete": "list", "aria-controls": id + "-list", autocomplete: "off",
    spellcheck: "false" });
  set(list, { id: id + "-list", role: "listbox", "aria-label": select.parentNode.querySelector("label").textContent });
  select.removeAttribute("id");
  select.hidden = true;
  select.box = box;
  select.after(box, list);
  close();
  box.addEventListener("focus", function () { box.select(); });
  box.addEventListener("blur", close);
  box.addEventListener("click", function () { if (list.hidden) { open(""); } });
  box.addEventListener("change", function (event) { event.stopPropagation(); });
  box.addEventListener("input", function (event) {
    event.stopPropagation();
    open(box.value);
  });
  box.addEventListener("keydown", function (event) {
    var step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (list.hidden ? !step : !step && event.key !== "Enter" && event.key !== "Escape") { return; }
    event.preventDefault();
    if (list.hidden) { open(""); } else if (step) { move(active + step); } else if (event.key === "Enter") { choose(shown[active]); } else { close(); }
  });
  list.addEventListener("mousedown", function (event) { event.preventDefault(); });  // the box keeps the focus
  list.addEventListener("click", function (event) { choose(event.target.closest(".option")); });
}

// Values of the device are those of another one, sizes and layers those of another network.
function changed(name) {
  if (name === "hw") {
    form.querySelectorAll(".knob input[type=text]").forEach(function (box) { box.value = ""; });
    form.querySelectorAll("[name=stack], [name=precision]").forEach(function (box) { box.value = ""; });
    form.querySelectorAll("input[type=hidden]").forEach(function (box) { if (box.name !== "pin") { box.remove(); } });
  }
  if (name === "net") {
    form.querySelectorAll("[name=layer], [name=bind], [name=seq_len]").forEach(function (box) { box.value = ""; });
  }
  window.location.assign(page + "?" + query());
}

form.querySelectorAll("select.combo").forEach(combobox);
form.addEventListener("submit", function (event) { event.preventDefault(); refresh(); });

// A file of the user's own: the server keeps it, and says by which name.
function send(file) {
  var sent = new FormData(), told = document.getElementById("told");
  if (!file) { return; }
  if (file.size > +drop.dataset.most) {
    told.textContent = file.name + " has " + Math.round(file.size / 1048576) + " MiB; at most " + drop.dataset.most / 1048576 +
      " MiB are taken here: `archsim whatif --net FILE` reads larger ones";
    return;
  }
  told.textContent = "Reading " + file.name;
  sent.append("file", file);
  fetch("/upload", { method: "POST", body: sent }).then(function (answer) {
    return answer.text().then(function (body) {
      if (!answer.ok) { told.textContent = "Not taken: " + body; return; }
      var found = new URLSearchParams(body).entries().next().value;
      var select = form.querySelector("select[name=" + found[0] + "]"), option = document.createElement("option");
      option.value = found[1];
      select.appendChild(option);
      select.value = found[1];
      changed(found[0]);
    });
  }).catch(function () { told.textContent = "The server does not answer: is `archsim ui` still running?"; });
}

form.querySelectorAll(".knob input[type=range]").forEach(function (slider) {
  var box = slider.closest(".knob").querySelector("input[type=text]");
  slid(box.value || box.placeholder, slider);
});
drop.hidden = false;
["dragover", "dragleave", "drop"].forEach(function (kind) {
  document.addEventListener(kind, function (event) {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop") { send(event.dataTransfer.files[0]); }
  });
});

prepare(null, "");
if (result.querySelector("[role=alert]")) {
  refuse(result.querySelector("[role=alert] span").textContent, result.querySelector("[role=alert]").dataset.field);
}
