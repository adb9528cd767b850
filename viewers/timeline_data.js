"use strict";
(function () {
  // The data of a timeline page: unpacking of levels and tiles, rows, and questions about spans.
  var wsf = window.wsfTimeline = {};

  function bytesOf(text) {
    var raw = atob(text), bytes = new Uint8Array(raw.length);
    for (var i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
  }
  function inflate(text) {
    var stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer().then(function (buffer) { return new Uint8Array(buffer); });
  }
  // Numbers whose bytes stand apart, lowest first, folded so that small negative ones are small too.
  function columns(bytes, widths, lengths) {
    var at = 0;
    return widths.map(function (width, c) {
      var length = lengths[c], out = new Float64Array(length);
      for (var k = 0, scale = 1; k < width; k++, scale *= 256) {
        for (var i = 0; i < length; i++) out[i] += bytes[at + i] * scale;
        at += length;
      }
      for (var j = 0; j < length; j++) { var v = out[j]; out[j] = v % 2 ? -(v + 1) / 2 : v / 2; }
      return out;
    });
  }

  // Moment on the axis of a row's ticks since its zero.
  wsf.moment = function (row, ticks) {
    var pieces = row.pieces;
    if (!pieces || !pieces.length) return ticks;
    var piece = pieces[0];
    for (var k = 1; k < pieces.length && pieces[k][0] <= ticks; k++) piece = pieces[k];
    return piece[1] + Math.floor((ticks - piece[0]) * piece[2] + 0.5);
  };

  // A tile with its spans by row: columns place, t0, t1, x0, x1, kind, iteration, flags, and wait (index or -1).
  function openTile(data, tile) {
    var n = tile.spans, w = tile.waits;
    var lengths = [n, n, n, n, n, n, w, w, w, w, w, w];
    return inflate(tile.data).then(function (bytes) {
      var c = columns(bytes, tile.widths, lengths);
      var place = c[0], t0 = c[1], t1 = c[2], iteration = c[4], flags = c[5];
      var x0 = new Float64Array(n), x1 = new Float64Array(n), wait = new Int32Array(n).fill(-1);
      var starts = {}, longest = {}, seen = 0;
      for (var i = 0; i < n; i++) {
        var same = i > 0 && place[i] === 0;
        if (same) place[i] = place[i - 1];
        t0[i] += same ? t1[i - 1] : 0;
        t1[i] += t0[i];
        if (same) iteration[i] += iteration[i - 1];
        var row = data.rows[place[i]];
        x0[i] = wsf.moment(row, t0[i]);
        x1[i] = wsf.moment(row, t1[i]);
        if (flags[i] & 8) wait[i] = seen++;
        var p = place[i];
        if (!starts[p]) { starts[p] = [i, i]; longest[p] = 0; }
        starts[p][1] = i + 1;
        longest[p] = Math.max(longest[p], x1[i] - x0[i]);
      }
      return {x0: x0, x1: x1, t0: t0, t1: t1, place: place, kind: c[3], iteration: iteration, flags: flags, wait: wait,
        verdict: c[6], producer: c[7], lag: c[8], from: c[9], slack: c[10], kept: c[11], starts: starts, longest: longest};
    });
  }

  wsf.open = function (data) {
    var store = {data: data, levels: [], tiles: data.tiles.map(function () { return null; }), asked: {}};
    store.ready = Promise.all(data.levels.map(function (level, n) {
      return inflate(level.data).then(function (bytes) { store.levels[n] = bytes; });
    })).then(function () {
      var table = data.iterations;
      return inflate(table.data).then(function (bytes) {
        var c = columns(bytes, table.widths, [table.count, table.count, table.count]);
        for (var i = 1; i < table.count; i++) { c[0][i] += c[0][i - 1]; c[1][i] += c[1][i - 1]; }
        for (var j = 0; j < table.count; j++) c[2][j] += c[1][j];
        store.iterations = {number: c[0], x0: c[1], x1: c[2]};
      });
    });
    return store;
  };

  // Tiles that reach into a window. Missing ones are opened, and `then` is called when they are there.
  wsf.tilesIn = function (store, low, high, then) {
    var found = [], missing = [];
    store.data.tiles.forEach(function (tile, n) {
      if (tile.x0 > high || Math.max(tile.reach, tile.x1) < low || !tile.spans) return;
      if (store.tiles[n]) found.push(store.tiles[n]);
      else if (!store.asked[n]) {
        store.asked[n] = true;
        missing.push(openTile(store.data, tile).then(function (made) { store.tiles[n] = made; }));
      }
    });
    if (missing.length) Promise.all(missing).then(then);
    return found;
  };
  // Whether every span that begins in the window is on the page.
  wsf.isExact = function (store, low, high) {
    var data = store.data;
    if (data.spans[0] === data.spans[1]) return true;
    var a = Math.max(low, data.extent[0]), b = Math.min(high, data.extent[1]), at = a;
    data.tiles.forEach(function (tile) { if (tile.x0 <= at && tile.x1 > at) at = tile.x1; });
    return at >= b;
  };

  // First span of a row in a tile that may reach past x.
  wsf.firstAt = function (tile, place, x) {
    var span = tile.starts[place];
    if (!span) return -1;
    var low = span[0], high = span[1], wanted = x - tile.longest[place];
    while (low < high) { var middle = (low + high) >> 1; if (tile.x0[middle] < wanted) low = middle + 1; else high = middle; }
    return low;
  };

  var LAYER = {stall: 3, active: 2, async: 1, scope: 0, unknown: 0, marker: 4};
  wsf.layer = function (kind) { return LAYER[kind.state] === undefined ? 0 : LAYER[kind.state]; };

  // The span of a row at a moment: of several the one drawn on top; markers within `near`.
  wsf.spanAt = function (store, place, x, near) {
    var best = null;
    store.tiles.forEach(function (tile) {
      if (!tile || !tile.starts[place]) return;
      for (var i = wsf.firstAt(tile, place, x - near); i >= 0 && i < tile.starts[place][1] && tile.x0[i] <= x + near; i++) {
        var kind = store.data.kinds[tile.kind[i]];
        var reach = kind.state === "marker" || tile.x1[i] === tile.x0[i] ? near : 0;
        if (tile.x0[i] - reach > x || tile.x1[i] + reach < x) continue;
        var rank = wsf.layer(kind) + (tile.flags[i] & 3 ? -2 : 0);
        if (!best || rank >= best.rank) best = {tile: tile, i: i, rank: rank};
      }
    });
    return best;
  };
  // The span of a row that begins after (way 1) or before (way -1) a moment.
  wsf.neighbour = function (store, place, x, way) {
    var best = null;
    store.tiles.forEach(function (tile) {
      var span = tile && tile.starts[place];
      if (!span) return;
      for (var i = span[0]; i < span[1]; i++) {
        var at = tile.x0[i];
        if (store.data.kinds[tile.kind[i]].state === "marker" || (way > 0 ? at <= x : at >= x)) continue;
        if (!best || (way > 0 ? at < best.tile.x0[best.i] : at > best.tile.x0[best.i])) best = {tile: tile, i: i};
      }
    });
    return best;
  };

  function number(value) { return Math.round(value).toLocaleString("en-US"); }
  wsf.number = number;
  function units(count, unit) { return number(count) + " " + (unit === "ns" ? "ns" : unit + (count === 1 ? "" : "s")); }

  // Everything that is known of a span, as lines of text.
  wsf.words = function (store, found) {
    var data = store.data, tile = found.tile, i = found.i;
    var row = data.rows[tile.place[i]], kind = data.kinds[tile.kind[i]], w = tile.wait[i];
    var tick = row.tick || data.unit;
    var raw = function (t) { return (BigInt(row.zero) + BigInt(t)).toString(); };
    var lines = [["Row", wsf.place(data, row) + " · " + row.name]];
    if (kind.state === "marker") {
      lines.push(["Stamp", kind.span], ["Iteration", tile.iteration[i]], ["At", number(tile.x0[i])]);
      lines.push(["Raw tick", raw(tile.t0[i]) + " (clock " + row.clock + ")"]);
    } else {
      lines.push(["Span", kind.span], ["State", kind.hides ? "active, hides a wait that has no stamps" : kind.state]);
      if (tile.flags[i] & 1) lines.push(["Remark", "its end was not recorded: counts in no state"]);
      else if (tile.flags[i] & 2) lines.push(["Remark", "ends on another lane: counts in no state"]);
      if (tile.iteration[i] >= 0) lines.push(["Iteration", tile.iteration[i]]);
      if (row.pass >= 0) lines.push(["Pass", row.pass + " (launch " + row.launch + ")"]);
      lines.push(["Length", units(tile.t1[i] - tile.t0[i], tick)]);
      if (row.rate && tick !== "ns") lines.push(["In ns", ((tile.t1[i] - tile.t0[i]) * row.rate).toFixed(1) + " ns"]);
      lines.push(["From", number(tile.x0[i]) + " to " + number(tile.x1[i])]);
      lines.push(["Raw ticks", raw(tile.t0[i]) + " to " + raw(tile.t1[i]) + " (clock " + row.clock + ")"]);
    }
    if (kind.barrier) lines.push(["Barrier", kind.barrier]);
    if (w >= 0) {
      var ticks = tile.t1[i] - tile.t0[i], blocked = tile.kept[w] < 0 ? 0 : ticks - tile.kept[w];
      var unjudged = tile.flags[i] & 4 ? ticks : 0;
      lines.push(["Verdict", data.verdicts[tile.verdict[w]]], ["Blocked", units(blocked, tick)]);
      lines.push(["Satisfied", units(ticks - blocked - unjudged, tick)]);
      if (unjudged) lines.push(["Unjudged", units(unjudged, tick)]);
      if (tile.producer[w] >= 0) {
        var by = data.producers[tile.producer[w]];
        lines.push(["Bound by", by[0] + " " + by[1] + ", iteration " + (tile.iteration[i] - tile.lag[w])]);
        lines.push(["Signal to exit", units(tile.slack[w], tick)]);
      }
    }
    return lines.map(function (line) { return line[0] + ": " + line[1]; }).join("\n");
  };
  wsf.place = function (data, row) {
    var parts = data.several ? ["launch " + row.launch] : [];
    if (row.cta >= 0) parts.push("CTA " + row.cta);
    if (row.sm >= 0) parts.push("SM " + row.sm);
    return parts.join(" · ") || "host";
  };

  // Rows in order, with the group that each begins: {place, head} where head is '' within a group.
  wsf.order = function (data, group, sort, filter) {
    var wanted = filter.trim().toLowerCase();
    var rows = data.rows.map(function (row, place) { return place; }).filter(function (place) {
      var row = data.rows[place];
      return !wanted || ["cta " + row.cta, "sm " + row.sm, String(row.cta), row.name.toLowerCase()].indexOf(wanted) >= 0;
    });
    var keyOf = function (row) {
      var launch = row.launch + "/";
      return group === "sm" ? launch + row.sm : group === "cta" ? launch + row.cta : "";
    };
    var start = function (row) { return row.x ? row.x[0] : Infinity; };
    var stall = function (row) { return row.extent ? row.stall / row.extent : -1; };
    var groups = new Map();
    rows.forEach(function (place) {
      var key = group === "none" ? place : keyOf(data.rows[place]);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(place);
    });
    var list = Array.from(groups.values());
    var sums = function (places, name) {
      return places.reduce(function (sum, place) { return sum + (data.rows[place][name] || 0); }, 0);
    };
    var byNumber = function (a, b) {
      var x = data.rows[a[0]], y = data.rows[b[0]];
      return x.launch - y.launch || (group === "sm" ? x.sm - y.sm : x.cta - y.cta) || a[0] - b[0];
    };
    var first = function (places) { return Math.min.apply(null, places.map(function (p) { return start(data.rows[p]); })); };
    list.sort(function (a, b) {
      var one = data.rows[a[0]], two = data.rows[b[0]];
      if (sort === "start" && data.comparable) return first(a) - first(b) || byNumber(a, b);
      if (sort === "stall") {
        return sums(b, "stall") / (sums(b, "extent") || 1) - sums(a, "stall") / (sums(a, "extent") || 1) || byNumber(a, b);
      }
      if (sort === "role" && group === "none") return one.order - two.order || byNumber(a, b);
      return byNumber(a, b);
    });
    var found = [];
    list.forEach(function (places) {
      places.sort(function (a, b) {
        var x = data.rows[a], y = data.rows[b];
        if (sort === "start" && data.comparable) return start(x) - start(y) || a - b;
        if (sort === "stall") return stall(y) - stall(x) || a - b;
        return (group === "sm" ? x.cta - y.cta : 0) || x.order - y.order || a - b;
      });
      places.forEach(function (place, n) { found.push({place: place, head: n === 0 && group !== "none"}); });
    });
    return found;
  };
})();
