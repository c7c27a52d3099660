// Reads out the values under the pointer, or under a line that the arrow keys move. Drags and the keys + - 0 zoom the
// horizontal axis. Legends hide lines. Pictures of wide windows are drawn again at their width. Without it the page is whole.
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

  // Draws a picture at the width that it has: its plot grows, texts and marks keep their size. Returns whether it changed.
  function widener(figure, svg) {
    var original = svg.innerHTML, plot = svg.dataset.plot, box = svg.getAttribute("viewBox").split(" ").map(Number);
    var last = box[2], growth = figure.matches(".waterfall, .dots, .network") ? 1 : 1.4;
    return function (pixels) {
      var width = Math.max(box[2], Math.round(pixels / growth));
      if (width === last) { return false; }
      last = width;
      var ends = plot.split(" ").map(Number), left = ends[0], right = ends[1], more = width - box[2];
      var times = (right + more - left) / (right - left);
      function place(x) {
        return Number((x > right ? x + more : left > x ? x : left + (x - left) * times).toFixed(2));
      }
      svg.innerHTML = original;
      svg.querySelectorAll("text, circle").forEach(function (node) {
        var key = node.hasAttribute("cx") ? "cx" : "x";
        node.setAttribute(key, place(Number(node.getAttribute(key))));
      });
      svg.querySelectorAll("rect").forEach(function (node) {
        var x = Number(node.getAttribute("x")), wide = Number(node.getAttribute("width"));
        var boxed = node.classList.contains("node"), from = boxed ? place(x + wide / 2) - wide / 2 : place(x);
        node.setAttribute("x", from);
        if (!boxed) { node.setAttribute("width", Math.max(1, place(x + wide) - from)); }
      });
      svg.querySelectorAll("path").forEach(function (node) {
        node.setAttribute("d", node.getAttribute("d").replace(/([MLH])(-?[0-9.]+)/g, function (_, letter, x) {
          return letter + place(Number(x));
        }));
      });
      svg.dataset.plot = [left, right + more, ends[2], ends[3]].join(" ");
      svg.setAttribute("viewBox", [0, 0, width, box[3]].join(" "));
      svg.style.setProperty("--units", width);
      return true;
    };
  }

  // Returns what is to be called once the picture was drawn again.
  function attach(figure, svg, chart) {
    var scale = svg.dataset.x.split(" ");
    var log = scale[0] === "log", min = Number(scale[1]), max = Number(scale[2]);
    var output = figure.querySelector("output");
    var cursor, share, view, dragged, plot, series, axis, labels;

    function begin() {
      cursor = share = dragged = null;
      view = [0, 1];
      plot = svg.dataset.plot.split(" ").map(Number);
      series = svg.querySelector("g.zoom");
      axis = svg.querySelector("g.x-axis");
      labels = axis ? axis.innerHTML : "";
      output.textContent = "";
      svg.classList.remove("zoomed");
    }

    function value(along) {
      return log ? min * Math.pow(max / min, along) : min + (max - min) * along;
    }

    // Round numbers between the ends of the view.
    function ticks() {
      var low = value(view[0]), high = value(view[1]), found = [], wanted = plot[1] - plot[0] > 400 ? 8 : 4;
      var rough = (high - low) / wanted, decade = Math.pow(10, Math.floor(Math.log10(rough)));
      var step = [1, 2, 5, 10].map(function (times) { return times * decade; }).find(function (step) {
        return step >= rough;
      });
      for (var tick = Math.ceil(low / step) * step; high >= tick; tick += step) { found.push(tick); }
      return found;
    }

    function element(name, attributes) {
      var made = document.createElementNS("http://www.w3.org/2000/svg", name);
      Object.keys(attributes).forEach(function (key) { made.setAttribute(key, attributes[key]); });
      return made;
    }

    // Shows the part of the axis from one share to another.
    function zoom(from, to) {
      if (!series || !axis) { return; }
      from = Math.max(0, from);
      to = Math.min(1, to);
      if (0.002 > to - from) { return; }
      view = [from, to];
      var times = 1 / (to - from), wide = plot[1] - plot[0];
      if (!series.parentNode.hasAttribute("clip-path")) {
        var clip = element("clipPath", { id: svg.querySelector("title").id + "-clip" });
        clip.appendChild(element("rect", { x: plot[0], y: 0, width: wide, height: svg.viewBox.baseVal.height }));
        var frame = element("g", { "clip-path": "url".concat("(#", clip.id, ")") });
        series.replaceWith(frame);
        frame.appendChild(series);
        svg.appendChild(clip);
      }
      series.setAttribute("transform",
        "translate(" + (plot[0] - (plot[0] + from * wide) * times) + " 0) scale(" + times + " 1)");
      svg.classList.toggle("zoomed", times > 1);
      axis.innerHTML = labels;
      if (times > 1) {
        var y = Number(axis.querySelector("text").getAttribute("y"));
        axis.textContent = "";
        ticks().forEach(function (tick) {
          var along = log ? Math.log(tick / min) / Math.log(max / min) : (tick - min) / (max - min);
          var x = plot[0] + (along - from) * times * wide;
          var text = element("text", { "class": "tick", x: x, y: y, "text-anchor": "middle" });
          text.textContent = significant(tick);
          axis.appendChild(element("path", { "class": "notch", d: "M" + x + " " + (y - 17) + "v4" }));
          axis.appendChild(text);
        });
      }
    }

    function hide() {
      if (cursor) { cursor.remove(); }
      cursor = null;
      share = null;
      output.textContent = "";
    }

    function show(along) {
      share = Math.min(1, Math.max(0, along));
      var x = value(view[0] + share * (view[1] - view[0]));
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
      var values = chart.series.filter(function (_, number) {
        return !figure.classList.contains("hide-" + number);
      }).map(function (series) {
        var point = (chart.nearest ? near : at)(series.points, x);
        var value = point ? significant(point[1]) + (chart.nearest ? " at " + significant(point[0]) : "") : "0";
        return chart.series.length > 1 ? series.name + " " + value : value;
      });
      output.textContent = chart.x.replace(", logarithmic", "") + " " + significant(x) + (values.length ? ": " : "") +
        values.join(", ") + (chart.y ? " (" + chart.y.replace(", logarithmic", "") + ")" : "");
    }

    function along(event) {
      var box = svg.getBoundingClientRect();
      var unit = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      return Math.min(1, Math.max(0, (unit - plot[0]) / (plot[1] - plot[0])));
    }

    svg.addEventListener("pointermove", function (event) { show(along(event)); });
    svg.addEventListener("pointerdown", function (event) {
      if (event.pointerType === "mouse") {
        // A drag would select the text of the page.
        event.preventDefault();
        svg.focus();
        dragged = along(event);
      }
    });
    svg.addEventListener("pointerup", function (event) {
      var ends = dragged === null ? [0, 0] : [dragged, along(event)].sort(function (a, b) { return a - b; });
      dragged = null;
      if (ends[1] - ends[0] > 0.02) {
        var wide = view[1] - view[0];
        zoom(view[0] + ends[0] * wide, view[0] + ends[1] * wide);
        show(along(event));
      }
    });
    svg.addEventListener("dblclick", function (event) { zoom(0, 1); show(along(event)); });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", function (event) {
      var step = event.shiftKey ? 0.1 : 0.01;
      var moves = { ArrowLeft: -step, ArrowRight: step };
      if (event.key === "Escape") { hide(); zoom(0, 1); return; }
      var factors = { "+": 0.25, "=": 0.25, "-": 1 };
      if (factors[event.key] !== undefined) {
        var wide = view[1] - view[0], centre = view[0] + (share === null ? 0.5 : share) * wide;
        zoom(centre - factors[event.key] * wide, centre + factors[event.key] * wide);
        if (share !== null) { show(share); }
        return;
      }
      if (event.key === "0") { zoom(0, 1); return; }
      if (event.key === "Home") { show(0); event.preventDefault(); return; }
      if (event.key === "End") { show(1); event.preventDefault(); return; }
      if (moves[event.key] === undefined) { return; }
      event.preventDefault();
      show(share === null ? 0.5 : share + moves[event.key]);
    });
    begin();
    return begin;
  }

  var begins = new Map();

  document.querySelectorAll("figure[data-chart]").forEach(function (figure) {
    var chart = data.charts[figure.dataset.chart];
    figure.querySelectorAll(":scope > svg").forEach(function (svg) {
      begins.set(svg, attach(figure, svg, chart));
    });
    figure.querySelectorAll("button[data-series]").forEach(function (button) {
      button.addEventListener("click", function () {
        var off = figure.classList.toggle("hide-" + button.dataset.series);
        button.setAttribute("aria-pressed", String(!off));
      });
    });
    if (figure.querySelector("svg path.line")) { drawn += 1; }
  });
  document.querySelectorAll("figure[data-late]").forEach(function (figure) {
    figure.querySelectorAll(":scope > svg").forEach(function (svg) {
      begins.set(svg, attach(figure, svg, data.charts[figure.dataset.late]));
    });
  });

  document.documentElement.classList.add("script");
  var printing = false, fitted = new Map();
  document.querySelectorAll("figure > svg.wide[data-plot]").forEach(function (svg) {
    var figure = svg.parentNode, widen = widener(figure, svg);
    fitted.set(figure, function () {
      // One that is hidden has no width.
      var changed = widen(printing ? 0 : svg.getBoundingClientRect().width);
      if (changed ? begins.has(svg) : false) { begins.get(svg)(); }
    });
  });
  function fit() { fitted.forEach(function (fit) { fit(); }); }
  fit();
  if (window.ResizeObserver) {
    var observer = new ResizeObserver(function (entries) {
      entries.forEach(function (entry) { fitted.get(entry.target)(); });
    });
    fitted.forEach(function (_, figure) { observer.observe(figure); });
  }
  // A sheet is narrower than the window.
  [["beforeprint", true], ["afterprint", false]].forEach(function (pair) {
    window.addEventListener(pair[0], function () {
      printing = pair[1];
      fit();
    });
  });
  // For tests: how many charts were found and attached.
  document.documentElement.dataset.charts = drawn;
}());
