// A click on a head sorts its table: numbers largest first, words in alphabetical order, a second click the other way.
document.querySelectorAll(".scroll table").forEach(function (table) {
  var body = table.tBodies[0];
  var heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach(function (head, column) {
    head.addEventListener("click", function () {
      var numeric = head.classList.contains("num");
      var turned = head.getAttribute("aria-sort") === (numeric ? "descending" : "ascending");
      var sign = numeric !== turned ? -1 : 1;
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      var rows = Array.from(body.rows);
      rows.sort(function (a, b) {
        var x = a.cells[column], y = b.cells[column];
        return sign * (numeric ? x.dataset.v - y.dataset.v : x.textContent.localeCompare(y.textContent));
      });
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });
});
