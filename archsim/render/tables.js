"use strict";
var MANY = 20;  // rows of a table, more than which are searched and scrolled
function valueOf(cell) { return cell.dataset.v === undefined ? parseFloat(cell.textContent) || 0 : +cell.dataset.v; }

// The head of a column sorts its table: numbers largest first, words in alphabetical order, once more the other way.
function makeSortable(table) {
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
}

// A search box above a table of many rows.
function makeSearchable(table) {
  var rows = Array.from(table.tBodies[0].rows);
  if (rows.length <= MANY) { return; }
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
}

// The heading above an element, which names it for a screen reader.
function headingOf(element) {
  var found = "Table";
  document.querySelectorAll("h1, h2, h3").forEach(function (heading) {
    if (heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) { found = heading.textContent; }
  });
  return found;
}

// A label that no other region of the page has.
function named(label) {
  var taken = Array.from(document.querySelectorAll("[role=region]")).map(function (one) { return one.getAttribute("aria-label"); });
  for (var name = label, count = 2; taken.indexOf(name) >= 0; count += 1) { name = label + " " + count; }
  return name;
}

// What scrolls takes the focus, so that the arrow keys move it.
function makeReachable(within) {
  within.querySelectorAll(".scroll, .wide, .drawing, pre").forEach(function (box) {
    if (box.querySelectorAll("tr").length > MANY || box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", named(headingOf(box)));
    }
  });
}

// Tables and drawings inside an element.
function prepareTables(within) {
  within.querySelectorAll(".scroll table").forEach(function (table) {
    makeSortable(table);
    makeSearchable(table);
  });
  makeReachable(within);
}
