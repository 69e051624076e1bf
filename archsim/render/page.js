"use strict";
prepareTables(document);
document.querySelectorAll(".layers").forEach(function (place) { drawTree(place); });

// A chart of many points is drawn wider than its box, which then scrolls; names and numbers beside it stay in sight.
var CLOSEST = 64, CLOSE = 8;  // times its width; from where on it has all numbers
document.querySelectorAll(".drawing.zooms").forEach(function (box) {
  var drawing = box.firstElementChild, side = drawing.querySelector(".side"), now = 1;

  function zoom(times) {
    var room = drawing.parentElement.clientWidth, middle = (box.scrollLeft + room / 2) / now;
    now = Math.min(Math.max(times, 1), CLOSEST);
    drawing.style.width = 100 * now + "%";
    box.classList.toggle("close", now >= CLOSE);
    box.scrollLeft = middle * now - room / 2;
  }

  var choice = element("p", "choice");
  [["closer", function () { zoom(2 * now); }], ["further", function () { zoom(now / 2); }], ["all", function () { zoom(1); }]]
    .forEach(function (one) {
      var button = element("button", "", one[0]);
      button.type = "button";
      button.addEventListener("click", one[1]);
      choice.appendChild(button);
    });
  box.before(choice);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", drawing.querySelector("title").textContent);
  box.addEventListener("scroll", function () { side.setAttribute("transform", "translate(" + box.scrollLeft + " 0)"); });
});
