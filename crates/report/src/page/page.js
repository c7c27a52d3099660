// Reads out the values under the pointer, or under a line that the arrow keys move. Without it the page is whole.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("fanin-data").textContent);
  var drawn = 0;

  function significant(number) {
    return String(Number(number.toPrecision(4)));
  }

  // The last point at or before x: a step holds its value until the next one.
  function at(points, x) {
    var low = 0, high = points.length - 1;
    if (high === -1 || points[0][0] > x) { return null; }
    while (high > low) {
      var middle = Math.ceil((low + high) / 2);
      if (points[middle][0] > x) { high = middle - 1; } else { low = middle; }
    }
    return points[low];
  }

  // The point nearest to x, where points stand for themselves.
  function near(points, x) {
    var best = points[0] || null;
    points.forEach(function (point) {
      if (Math.abs(best[0] - x) > Math.abs(point[0] - x)) { best = point; }
    });
    return best;
  }

  function attach(figure, svg, chart) {
    var plot = svg.dataset.plot.split(" ").map(Number);
    var scale = svg.dataset.x.split(" ");
    var log = scale[0] === "log", min = Number(scale[1]), max = Number(scale[2]);
    var output = figure.querySelector("output");
    var cursor = null, share = null;

    function hide() {
      if (cursor) { cursor.remove(); }
      cursor = null;
      share = null;
      output.textContent = "";
    }

    function show(along) {
      share = Math.min(1, Math.max(0, along));
      var x = log ? min * Math.pow(max / min, share) : min + (max - min) * share;
      var px = plot[0] + share * (plot[1] - plot[0]);
      if (!cursor) {
        cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
        cursor.setAttribute("class", "cursor");
        cursor.setAttribute("y1", plot[2]);
        cursor.setAttribute("y2", plot[3]);
        svg.appendChild(cursor);
      }
      cursor.setAttribute("x1", px);
      cursor.setAttribute("x2", px);
      var values = chart.series.map(function (series) {
        var point = (chart.nearest ? near : at)(series.points, x);
        var value = point ? significant(point[1]) + (chart.nearest ? " at " + significant(point[0]) : "") : "0";
        return chart.series.length > 1 ? series.name + " " + value : value;
      });
      output.textContent = chart.x.replace(", logarithmic", "") + " " + significant(x) + ": " +
        values.join(", ") + " (" + chart.y.replace(", logarithmic", "") + ")";
    }

    svg.addEventListener("pointermove", function (event) {
      var box = svg.getBoundingClientRect();
      var unit = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      show((unit - plot[0]) / (plot[1] - plot[0]));
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", function (event) {
      var step = event.shiftKey ? 0.1 : 0.01;
      var moves = { ArrowLeft: -step, ArrowRight: step };
      if (event.key === "Escape") { hide(); return; }
      if (event.key === "Home") { show(0); event.preventDefault(); return; }
      if (event.key === "End") { show(1); event.preventDefault(); return; }
      if (moves[event.key] === undefined) { return; }
      event.preventDefault();
      show(share === null ? 0.5 : share + moves[event.key]);
    });
  }

  document.querySelectorAll("figure[data-chart]").forEach(function (figure) {
    var chart = data.charts[figure.dataset.chart];
    figure.querySelectorAll(":scope > svg").forEach(function (svg) {
      attach(figure, svg, chart);
    });
    if (figure.querySelector("svg path.line")) { drawn += 1; }
  });
  // For tests: how many charts were found and attached.
  document.documentElement.dataset.charts = drawn;
}());
