"use strict";
(function () {
  // What the reader does: moving, zooming, choosing rows and spans, by mouse, touch and keys.
  var wsf = window.wsfTimeline;
  var AXIS = 34;

  function setup(section) {
    var data = JSON.parse(section.querySelector("script.wsf-data").textContent);
    var store = wsf.open(data);
    var q = function (selector) { return section.querySelector(selector); };
    var box = q(".wsf-rows"), space = q(".wsf-space"), detail = q(".wsf-detail"), overview = q(".wsf-overview");
    var words = q(".wsf-span"), status = q(".wsf-status");
    var state = {view: data.window.slice(), scroll: 0, group: "cta", sort: "number", filter: "", size: "auto",
      axis: AXIS, left: 130, chosen: -1, span: null, lines: []};
    var many = data.rows.length > 60;
    var field = function (name) { return q("[data-do=" + name + "]"); };
    var pending = false;
    section.wsfState = state;
    section.wsfStore = store;

    function layout() {
      var list = wsf.order(data, state.group, state.sort, state.filter);
      var tall = state.size === "auto" ? (many ? 6 : data.rows.length > 16 ? 14 : 24) : Number(state.size);
      var gap = tall >= 12 ? 4 : tall >= 6 ? 1 : 0.5, y = 4;
      state.lines = list.map(function (entry) {
        var headroom = entry.head && (tall >= 10) ? 16 : 0;
        y += headroom || (entry.head ? 3 : 0);
        var line = {place: entry.place, head: entry.head, y: y, height: tall, headroom: headroom};
        y += tall + gap;
        return line;
      });
      state.total = y + 8;
    }
    function draw() {
      pending = false;
      var width = section.clientWidth;
      state.width = Math.max(280, width);
      state.left = state.width < 600 ? 96 : 136;
      var room = wsf.printing ? state.total : Math.min(state.total, Math.max(160, window.innerHeight * 0.66 - AXIS));
      state.height = Math.round(room + AXIS);
      space.style.height = Math.round(state.total + AXIS) + "px";
      box.style.height = state.height + 1 + "px";
      state.scroll = wsf.printing ? 0 : box.scrollTop;
      wsf.paintRows(detail, store, state);
      wsf.paintOverview(overview, store, state);
      tell();
    }
    function redraw() { if (!pending) { pending = true; requestAnimationFrame(draw); } }
    state.redraw = redraw;

    function tell() {
      var unit = data.unit === "ns" ? "ns" : data.unit + "s", mode = state.mode;
      var shown = wsf.number(state.view[0]) + " to " + wsf.number(state.view[1]) + " " + unit;
      var how = mode.exact ? "every span as recorded" :
        "shares of each state in bins of " + wsf.number(mode.level.width) + " " + unit +
        (wsf.isExact(store, state.view[0], state.view[1]) ? "; zoom in for the spans" : "; the spans here are not on this page");
      var text = shown + " · " + how + " · " + state.lines.length + " of " + data.rows.length + " rows";
      if (status.textContent !== text) status.textContent = text;
      section.dataset.drawn = "yes";
      section.dataset.mode = mode.exact ? "exact" : "bins";
    }

    function look(low, high) {
      var whole = data.extent[1] - data.extent[0], least = Math.min(whole, 20);
      var wide = Math.min(Math.max(high - low, least), whole * 1.04 + 1);
      var middle = (low + high) / 2;
      var a = Math.max(data.extent[0] - whole * 0.02, middle - wide / 2);
      a = Math.min(a, data.extent[1] + whole * 0.02 - wide);
      state.view = [a, a + wide];
      redraw();
    }
    function zoom(factor, x) {
      var at = x === undefined ? (state.view[0] + state.view[1]) / 2 : x;
      look(at - (at - state.view[0]) * factor, at + (state.view[1] - at) * factor);
    }
    function move(share) {
      var by = (state.view[1] - state.view[0]) * share;
      look(state.view[0] + by, state.view[1] + by);
    }
    function atPixel(x) {
      return state.view[0] + (x - state.left) / (state.width - state.left - 8) * (state.view[1] - state.view[0]);
    }
    function lineAt(y) {
      var at = y - AXIS + state.scroll;
      return y < AXIS ? undefined : state.lines.find(function (line) { return at >= line.y - 1 && at <= line.y + line.height + 1; });
    }

    // What is under the pointer: a span, or the shares of a bin.
    function under(event) {
      var frame = detail.getBoundingClientRect(), x = event.clientX - frame.left, line = lineAt(event.clientY - frame.top);
      if (!line || x < state.left - 4 && line) return line ? {line: line, text: rowWords(line.place)} : null;
      var at = atPixel(x), row = data.rows[line.place];
      if (!row.x) return {line: line, text: rowWords(line.place)};
      if (state.mode.exact) {
        var near = 3 * (state.view[1] - state.view[0]) / (state.width - state.left - 8);
        var span = wsf.spanAt(store, line.place, at, near);
        if (span) return {line: line, span: span, text: wsf.words(store, span)};
        var outside = at < row.x[0] || at > row.x[1];
        return {line: line, text: "Row: " + wsf.place(data, row) + " · " + row.name + "\n" +
          (outside ? "Outside the record of this row" : "State: not instrumented")};
      }
      var level = state.mode.level, bin = Math.floor((at - data.extent[0]) / level.width);
      if (bin < 0 || bin >= level.bins) return null;
      var stall = level.bytes[line.place * 2 * level.bins + bin] / 255;
      var active = level.bytes[line.place * 2 * level.bins + level.bins + bin] / 255;
      var from = data.extent[0] + bin * level.width;
      return {line: line, text: "Row: " + wsf.place(data, row) + " · " + row.name + "\nBin: " + wsf.number(from) + " to " +
        wsf.number(from + level.width) + "\nActive: " + percent(active) + "\nStall: " + percent(stall) +
        "\nThe rest: not instrumented, or outside the record\nShares to 0.4 points; zoom in for the spans"};
    }
    function percent(share) { return (share * 100).toFixed(1) + " %"; }
    function rowWords(place) {
      var row = data.rows[place], unit = row.tick === "ns" ? "ns" : (row.tick || data.unit) + "s";
      if (!row.x) return wsf.place(data, row) + " · " + row.name + "\nNo stamps: nothing is known about it";
      var share = function (ticks) { return wsf.number(ticks) + " (" + (row.extent ? (ticks / row.extent * 100).toFixed(1) : "0") + " %)"; };
      return "Row: " + wsf.place(data, row) + " · " + row.name + "\nRecorded: " + wsf.number(row.extent) + " " + unit +
        "\nActive: " + share(row.active) + "\nStall: " + share(row.stall) + "\nBlocked: " + share(row.blocked) +
        "\nNot instrumented: " + share(row.untracked) + (row.note ? "\nRemark: " + row.note : "");
    }
    function choose(place, span) {
      state.chosen = place;
      state.span = span || null;
      words.textContent = span ? wsf.words(store, span) : place >= 0 ? rowWords(place) :
        "No span chosen: click one, or press comma and full stop.";
      redraw();
    }
    function step(way) {
      if (state.chosen < 0 && state.lines.length) state.chosen = state.lines[0].place;
      var from = state.span && state.span.tile.place[state.span.i] === state.chosen ? state.span.tile.x0[state.span.i] :
        way > 0 ? state.view[0] - 1 : state.view[1] + 1;
      var next = wsf.neighbour(store, state.chosen, from, way);
      if (!next) { words.textContent = "No span that way on this page in what has been shown so far: zoom in first."; return; }
      var x = (next.tile.x0[next.i] + next.tile.x1[next.i]) / 2, wide = state.view[1] - state.view[0];
      if (x < state.view[0] || x > state.view[1]) look(x - wide / 2, x + wide / 2);
      choose(state.chosen, next);
    }
    function row(way) {
      var at = state.lines.findIndex(function (line) { return line.place === state.chosen; });
      var next = state.lines[Math.min(state.lines.length - 1, Math.max(0, at < 0 ? 0 : at + way))];
      if (!next) return;
      var top = next.y - 20, room = state.height - AXIS;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (next.y + next.height + 20 > box.scrollTop + room) box.scrollTop = next.y + next.height + 20 - room;
      choose(next.place, null);
    }
    function iteration(wanted) {
      var table = store.iterations, best = -1;
      for (var i = 0; i < table.number.length; i++) {
        if (best < 0 || Math.abs(table.number[i] - wanted) < Math.abs(table.number[best] - wanted)) best = i;
      }
      if (best < 0) { status.textContent = "No iterations on this page."; return; }
      field("iteration").value = table.number[best];
      var pad = Math.max(1, (table.x1[best] - table.x0[best]) * 0.08);
      look(table.x0[best] - pad, table.x1[best] + pad);
    }
    function byOne(way) {
      var now = parseInt(field("iteration").value, 10);
      iteration(isNaN(now) ? store.iterations.number[way > 0 ? 0 : store.iterations.number.length - 1] : now + way);
    }
    function again() { layout(); redraw(); }
    function reset() { look(data.extent[0], data.extent[1]); }

    ["group", "sort", "size"].forEach(function (name) {
      field(name).addEventListener("change", function () { state[name] = this.value; again(); });
    });
    field("filter").addEventListener("input", function () { state.filter = this.value; again(); });
    field("go").addEventListener("click", function () { iteration(parseInt(field("iteration").value, 10) || 0); });
    field("iteration").addEventListener("keydown", function (event) {
      if (event.key === "Enter") iteration(parseInt(this.value, 10) || 0);
    });
    field("back").addEventListener("click", function () { byOne(-1); });
    field("on").addEventListener("click", function () { byOne(1); });
    field("in").addEventListener("click", function () { zoom(0.5); });
    field("out").addEventListener("click", function () { zoom(2); });
    field("reset").addEventListener("click", reset);
    field("png").addEventListener("click", function () {
      detail.toBlob(function (blob) { window.wsfSave(blob, "image/png", "timeline.png"); });
    });
    if (!data.comparable) {
      var option = field("sort").querySelector("[value=start]");
      option.disabled = true;
      option.textContent = "by start (clocks not comparable)";
    }
    box.addEventListener("keydown", function (event) {
      var keys = {ArrowLeft: function () { move(-0.2); }, ArrowRight: function () { move(0.2); },
        ArrowUp: function () { row(-1); }, ArrowDown: function () { row(1); }, "+": function () { zoom(0.5); },
        "=": function () { zoom(0.5); }, "-": function () { zoom(2); }, Home: reset, "0": reset,
        ",": function () { step(-1); }, ".": function () { step(1); }, "[": function () { byOne(-1); },
        "]": function () { byOne(1); }, Escape: function () { choose(-1, null); }};
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    box.addEventListener("scroll", redraw);
    detail.addEventListener("wheel", function (event) {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      if (event.ctrlKey) zoom(Math.pow(1.0018, event.deltaY), atPixel(event.clientX - detail.getBoundingClientRect().left));
      else move((event.deltaX || event.deltaY) / state.width);
    }, {passive: false});
    detail.addEventListener("dblclick", function (event) {
      zoom(0.25, atPixel(event.clientX - detail.getBoundingClientRect().left));
    });
    var drag = null;
    detail.addEventListener("pointerdown", function (event) { drag = {x: event.clientX, view: state.view.slice(), moved: false}; });
    window.addEventListener("pointermove", function (event) {
      if (!drag) return;
      var by = (drag.x - event.clientX) / (state.width - state.left - 8) * (drag.view[1] - drag.view[0]);
      if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
      if (drag.moved) look(drag.view[0] + by, drag.view[1] + by);
    });
    window.addEventListener("pointerup", function (event) {
      if (drag && !drag.moved && event.target === detail) {
        var found = under(event);
        choose(found ? found.line.place : -1, found && found.span);
        box.focus({preventScroll: true});
      }
      drag = null;
    });
    detail.addEventListener("pointermove", function (event) {
      if (drag && drag.moved) return window.wsfTip.hide();
      var found = under(event);
      if (found) window.wsfTip.show(found.text, event.clientX, event.clientY);
      else window.wsfTip.hide();
    });
    detail.addEventListener("pointerleave", function () { window.wsfTip.hide(); });

    // The brush: drag a new window, or the window itself, or one of its ends.
    var brush = null;
    function onRecord(event) {
      var frame = overview.getBoundingClientRect(), plot = state.width - state.left - 8;
      var share = (event.clientX - frame.left - state.left) / plot;
      return data.extent[0] + Math.min(1, Math.max(0, share)) * (data.extent[1] - data.extent[0]);
    }
    overview.addEventListener("pointerdown", function (event) {
      var x = onRecord(event), near = (data.extent[1] - data.extent[0]) * 6 / (state.width - state.left);
      var whole = state.view[1] - state.view[0] > (data.extent[1] - data.extent[0]) * 0.97;
      var at = Math.abs(x - state.view[0]) < near ? "low" : Math.abs(x - state.view[1]) < near ? "high" :
        !whole && x > state.view[0] && x < state.view[1] ? "both" : "new";
      brush = {at: at, x: x, view: state.view.slice()};
      overview.setPointerCapture(event.pointerId);
    });
    overview.addEventListener("pointermove", function (event) {
      if (!brush) return;
      var x = onRecord(event), by = x - brush.x, v = brush.view;
      if (brush.at === "both") look(v[0] + by, v[1] + by);
      else if (brush.at === "low") look(Math.min(x, v[1]), Math.max(x, v[1]));
      else if (brush.at === "high") look(Math.min(x, v[0]), Math.max(x, v[0]));
      else if (Math.abs(by) > 0) look(Math.min(x, brush.x), Math.max(x, brush.x));
    });
    overview.addEventListener("pointerup", function () { brush = null; });

    function theme() { wsf.paintLegend(q(".wsf-legend"), store); redraw(); }
    document.addEventListener("wsf-theme", theme);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
    window.addEventListener("resize", redraw);
    // On paper: light, all rows, three dots to a pixel.
    window.addEventListener("beforeprint", function () { wsf.printing = true; wsf.paintLegend(q(".wsf-legend"), store); draw(); });
    window.addEventListener("afterprint", function () { wsf.printing = false; theme(); });
    store.ready.then(function () {
      layout();
      look(state.view[0], state.view[1]);
      theme();
    }).catch(function (error) { status.textContent = "The timeline cannot be drawn: " + error.message; });
  }
  document.querySelectorAll("section.wsf-timeline").forEach(setup);
})();
