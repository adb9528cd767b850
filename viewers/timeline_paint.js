"use strict";
(function () {
  // Painting of the timeline: exact spans where they are wide enough to see, else the share of each state in a bin.
  var wsf = window.wsfTimeline;
  var FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif";

  wsf.themeOf = function () {
    var forced = document.documentElement.getAttribute("data-theme");
    if (wsf.printing) return "light";
    if (forced) return forced;
    return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  };

  // The hatch of stalls: fixed to the page, so that neighbours continue each other's lines.
  function hatch(context, ink, ratio) {
    var tile = document.createElement("canvas");
    tile.width = tile.height = 4 * ratio;
    var c = tile.getContext("2d");
    c.scale(ratio, ratio);
    c.fillStyle = ink.stall.base;
    c.fillRect(0, 0, 4, 4);
    c.strokeStyle = ink.stall.line;
    c.lineWidth = 1;
    c.beginPath();
    [[-1, 1, 1, -1], [0, 4, 4, 0], [3, 5, 5, 3]].forEach(function (p) { c.moveTo(p[0], p[1]); c.lineTo(p[2], p[3]); });
    c.stroke();
    var pattern = context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    return pattern;
  }
  // What the hatch looks like from so far that its lines blur: for rows and bins too small to hatch.
  function tone(ink) {
    return mix(ink.stall.base, ink.stall.line, 0.354);
  }
  function mix(a, b, share) {
    var out = "#";
    for (var k = 1; k < 7; k += 2) {
      var x = parseInt(a.slice(k, k + 2), 16), y = parseInt(b.slice(k, k + 2), 16);
      out += ("0" + Math.round(x + (y - x) * share).toString(16)).slice(-2);
    }
    return out;
  }

  wsf.canvas = function (canvas, width, height) {
    // Browsers paint nothing on a canvas of more than some 16,000 pixels a side.
    var ratio = Math.min(wsf.printing ? 3 : window.devicePixelRatio || 1, 16000 / width, 16000 / height);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    var context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return {c: context, ratio: ratio};
  };

  // Steps 1, 2, 5 times a power of ten, some hundred pixels apart.
  wsf.ticks = function (low, high, width) {
    var rough = (high - low) / Math.max(2, width / 100), ten = Math.pow(10, Math.floor(Math.log10(rough)));
    var step = Math.max(1, [1, 2, 5, 10].map(function (m) { return m * ten; }).find(function (s) { return s >= rough; }));
    var found = [];
    for (var at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
    return found;
  };

  // The finest level whose bins are not much finer than pixels, as {bytes, bins, width}.
  function levelFor(store, perPixel) {
    var best = 0;
    store.data.levels.forEach(function (level, n) { if (level.width >= perPixel * 0.6 || n === 0) best = n; });
    var level = store.data.levels[best];
    return {bytes: store.levels[best], bins: level.bins, width: level.width};
  }

  // What is drawn of the rows now: exact or bins, and how wide a bin is.
  wsf.mode = function (store, view, width) {
    var data = store.data, perPixel = (view[1] - view[0]) / width;
    var level = levelFor(store, perPixel);
    var rows = data.rows.filter(function (row) { return row.x; }).length || 1;
    var dense = data.spans[1] / rows * (view[1] - view[0]) / (data.extent[1] - data.extent[0]) / width;
    var coarse = level.width / perPixel > 3;
    var exact = wsf.isExact(store, view[0], view[1]) && (dense < 0.35 || coarse && dense < 1.5);
    return {exact: exact, level: level};
  };

  wsf.paintRows = function (canvas, store, state) {
    var data = store.data, theme = wsf.themeOf(), ink = data.palette[theme];
    var made = wsf.canvas(canvas, state.width, state.height), c = made.c;
    var left = state.left, plot = state.width - left - 8, view = state.view;
    var scale = plot / (view[1] - view[0]);
    var px = function (x) { return left + (x - view[0]) * scale; };
    var mode = state.mode = wsf.mode(store, view, plot);
    var tiles = mode.exact ? wsf.tilesIn(store, view[0], view[1], state.redraw) : [];
    var paint = {stall: hatch(c, ink, made.ratio), tone: tone(ink), ink: ink, dark: theme === "dark" ? 1 : 0};
    c.fillStyle = ink.paper;
    c.fillRect(0, 0, state.width, state.height);
    c.font = "11px " + FONT;
    c.textBaseline = "middle";
    c.strokeStyle = ink.rule;
    c.setLineDash([1, 3]);
    wsf.ticks(view[0], view[1], plot).forEach(function (x) {
      c.beginPath(); c.moveTo(px(x), state.axis); c.lineTo(px(x), state.height); c.stroke();
    });
    c.setLineDash([]);
    c.save();
    c.beginPath();
    c.rect(0, state.axis, state.width, state.height - state.axis);
    c.clip();
    var drawn = [];
    state.lines.forEach(function (line, n) {
      var y = line.y - state.scroll + state.axis;
      if (y + line.height < state.axis || y > state.height) return;
      drawn.push({line: line, y: y});
      var row = data.rows[line.place];
      if (line.place === state.chosen) { c.fillStyle = ink.heat[1]; c.fillRect(0, y - 1, state.width, line.height + 2); }
      label(c, data, row, line, y, state, paint);
      if (!row.x) {
        c.fillStyle = ink.quiet;
        if (line.height >= 9) c.fillText("no stamps", left + 6, y + line.height / 2);
        return;
      }
      c.save();
      c.beginPath();
      c.rect(left, y, plot, line.height);
      c.clip();
      c.fillStyle = ink.untracked;
      c.fillRect(px(row.x[0]), y, Math.max(1, (row.x[1] - row.x[0]) * scale), line.height);
      if (mode.exact) tiles.forEach(function (tile) { exact(c, data, tile, line, y, view, px, scale, paint); });
      else bins(c, data, row, line, y, view, px, scale, paint, mode.level);
      c.restore();
    });
    if (state.span) arrow(c, store, state, drawn, px, ink);
    c.restore();
    axis(c, data, state, px, ink, plot);
  };

  function label(c, data, row, line, y, state, paint) {
    var room = state.left - 12;
    c.textAlign = "left";
    if (line.head) {
      c.fillStyle = paint.ink.quiet;
      c.font = "10px " + FONT;
      var head = state.group === "sm" ? "SM " + (row.sm < 0 ? "unknown" : row.sm) : row.cta < 0 ? "host" : "CTA " + row.cta;
      if (state.group === "cta" && row.sm >= 0) head += " · SM " + row.sm;
      if (data.several) head = "launch " + row.launch + " · " + head;
      if (line.headroom) c.fillText(head, 4, y - line.headroom / 2, room + 60);
      else c.fillText(head, 4, y + 4, room);
    }
    if (line.height >= 10) {
      c.font = "bold 11px " + FONT;
      c.fillStyle = row.colour[paint.dark];
      c.textAlign = "right";
      var name = state.group === "none" && row.cta >= 0 ? row.name + " " + row.cta : row.name;
      c.fillText(name, state.left - 8, y + line.height / 2 - (row.note && line.height >= 22 ? 5 : 0), room);
      if (row.note && line.height >= 22) {
        c.font = "9px " + FONT;
        c.fillStyle = paint.ink.quiet;
        c.fillText(row.note, state.left - 8, y + line.height / 2 + 7, room);
      }
    }
  }

  function exact(c, data, tile, line, y, view, px, scale, paint) {
    var end = tile.starts[line.place];
    if (!end) return;
    var height = line.height, from = wsf.firstAt(tile, line.place, view[0]);
    // In layers: scopes below, then async, active, stalls over them, stamps on top.
    for (var layer = 0; layer <= 4; layer++) {
      for (var i = from; i < end[1] && tile.x0[i] <= view[1]; i++) {
        var kind = data.kinds[tile.kind[i]];
        if (wsf.layer(kind) !== layer || tile.x1[i] < view[0]) continue;
        var a = Math.max(px(tile.x0[i]), -10), b = Math.min(px(tile.x1[i]), 1e5), wide = b - a;
        var colour = kind.colour[paint.dark];
        if (layer === 4) {
          c.fillStyle = paint.ink.ink;
          c.fillRect(a - 0.5, y, 1, height);
        } else if (tile.flags[i] & 3) {
          c.strokeStyle = colour;
          c.setLineDash([4, 2]);
          c.strokeRect(a, y + 0.5, Math.max(1, wide), height - 1);
          c.setLineDash([]);
        } else if (layer === 3) {
          c.fillStyle = wide < 2 || height < 5 ? paint.tone : paint.stall;
          c.fillRect(a, y, Math.max(wide, 0.6), height);
          if (wide >= 4 && height >= 8) { c.strokeStyle = paint.ink.stall.edge; c.lineWidth = 0.5; c.strokeRect(a, y + 0.25, wide, height - 0.5); c.lineWidth = 1; }
        } else if (layer === 2) {
          c.fillStyle = colour;
          c.fillRect(a, y, Math.max(wide - (wide >= 4 ? 0.5 : 0), 0.6), height);
          if (kind.hides && wide >= 6 && height >= 10) {
            c.fillStyle = paint.ink.paper;
            for (var dash = Math.max(a, 0); dash < Math.min(b, 4000) - 2; dash += 6) c.fillRect(dash, y + height - 4, 3, 1.6);
          }
          var words = String(tile.iteration[i]), from0 = Math.max(a, px(view[0])), to = Math.min(b, px(view[1]));
          if (height >= 14 && to - from0 > words.length * 6 + 6 && tile.iteration[i] >= 0) {
            c.font = "10px " + FONT;
            c.textAlign = "center";
            c.fillStyle = paint.ink.paper;
            c.fillText(words, (from0 + to) / 2, y + height / 2);
          }
        } else {
          c.fillStyle = colour;
          c.globalAlpha = layer === 1 ? 0.55 : 0.3;
          c.fillRect(a, y + height - Math.max(2, height * 0.18), Math.max(wide, 0.6), Math.max(2, height * 0.18));
          c.globalAlpha = 1;
        }
      }
    }
  }

  function bins(c, data, row, line, y, view, px, scale, paint, level) {
    if (!level.bytes) return;
    var low = data.extent[0], height = line.height, base = line.place * 2 * level.bins;
    var first = Math.max(0, Math.floor((view[0] - low) / level.width)), last = Math.min(level.bins - 1, Math.floor((view[1] - low) / level.width));
    var wide = level.width * scale, colour = row.colour[paint.dark];
    for (var b = first; b <= last; b++) {
      var stall = level.bytes[base + b] / 255, active = level.bytes[base + level.bins + b] / 255;
      if (!stall && !active) continue;
      var a = px(low + b * level.width), w = wide + 0.3;
      if (height >= 8) {
        // Shares as heights: active from below, stall on it; what is left is not instrumented.
        c.fillStyle = colour;
        c.fillRect(a, y + height * (1 - active), w, height * active);
        c.fillStyle = wide >= 3 ? paint.stall : paint.tone;
        c.fillRect(a, y + height * (1 - active - stall), w, height * stall);
      } else {
        c.fillStyle = mix(mix(paint.ink.untracked, colour, active), paint.tone, stall / Math.max(stall + (1 - active), 1e-6) * (stall > 0 ? 1 : 0));
        c.fillRect(a, y, w, height);
      }
    }
  }

  // From the binding signal to the end of the wait that is chosen.
  function arrow(c, store, state, drawn, px, ink) {
    var tile = state.span.tile, i = state.span.i, w = tile.wait[i];
    drawn.forEach(function (here) {
      if (here.line.place !== tile.place[i]) return;
      c.strokeStyle = ink.ink;
      c.lineWidth = 2;
      c.strokeRect(px(tile.x0[i]), here.y - 1, Math.max(2, px(tile.x1[i]) - px(tile.x0[i])), here.line.height + 2);
      if (w < 0 || !(tile.flags[i] & 16)) return;
      drawn.forEach(function (there) {
        if (there.line.place !== tile.place[i] + tile.from[w]) return;
        var x0 = px(wsf.moment(store.data.rows[there.line.place], tile.t1[i] - tile.slack[w] + shift(store, tile.place[i], there.line.place)));
        var x1 = px(tile.x1[i]), down = there.y < here.y;
        var y0 = down ? there.y + there.line.height : there.y, y1 = down ? here.y : here.y + here.line.height;
        [[ink.paper, 4], [ink.ink, 1.5]].forEach(function (pen) {
          c.strokeStyle = pen[0];
          c.lineWidth = pen[1];
          c.beginPath(); c.moveTo(x0, y0); c.lineTo(x1, y1); c.stroke();
        });
        c.fillStyle = ink.ink;
        c.beginPath();
        c.moveTo(x1, y1); c.lineTo(x1 - 4, y1 + (down ? -7 : 7)); c.lineTo(x1 + 4, y1 + (down ? -7 : 7)); c.fill();
      });
    });
    c.lineWidth = 1;
  }
  // Ticks of one row's zero before another's, on the same clock.
  function shift(store, a, b) {
    return Number(BigInt(store.data.rows[a].zero) - BigInt(store.data.rows[b].zero));
  }

  function axis(c, data, state, px, ink, plot) {
    c.fillStyle = ink.paper;
    c.fillRect(0, 0, state.width, state.axis);
    c.strokeStyle = ink.quiet;
    c.fillStyle = ink.ink;
    c.font = "11px " + FONT;
    c.textAlign = "center";
    wsf.ticks(state.view[0], state.view[1], plot).forEach(function (x) {
      c.beginPath(); c.moveTo(px(x), state.axis - 5); c.lineTo(px(x), state.axis); c.stroke();
      c.fillText(wsf.number(x), Math.min(Math.max(px(x), state.left + 12), state.width - 24), state.axis - 12);
    });
    c.fillStyle = ink.quiet;
    c.fillText(data.axis, state.left + plot / 2, 9, plot);
    c.beginPath(); c.moveTo(state.left, state.axis - 0.5); c.lineTo(state.left + plot, state.axis - 0.5); c.stroke();
  }

  // All rows as one: the mean share of each state, active by role, over the whole record.
  wsf.paintOverview = function (canvas, store, state) {
    var data = store.data, theme = wsf.themeOf(), ink = data.palette[theme], dark = theme === "dark" ? 1 : 0;
    var made = wsf.canvas(canvas, state.width, 54), c = made.c, left = state.left, plot = state.width - left - 8;
    c.fillStyle = ink.paper;
    c.fillRect(0, 0, state.width, 54);
    var level = data.levels[Math.min(1, data.levels.length - 1)], bytes = store.levels[Math.min(1, data.levels.length - 1)];
    var whole = data.extent[1] - data.extent[0], scale = plot / whole, top = 4, high = 44;
    var rows = data.rows.map(function (row, place) { return place; }).filter(function (place) { return data.rows[place].x; });
    var names = [];
    rows.forEach(function (place) { var n = data.rows[place].name; if (names.indexOf(n) < 0) names.push(n); });
    names.sort(function (a, b) { return order(data, a) - order(data, b); });
    c.fillStyle = ink.untracked;
    c.fillRect(left, top, plot, high);
    var sums = names.map(function () { return new Float64Array(level.bins); }), stall = new Float64Array(level.bins);
    rows.forEach(function (place) {
      var base = place * 2 * level.bins, sum = sums[names.indexOf(data.rows[place].name)];
      for (var b = 0; b < level.bins; b++) { stall[b] += bytes[base + b]; sum[b] += bytes[base + level.bins + b]; }
    });
    var pattern = hatch(c, ink, made.ratio), full = rows.length * 255 || 1;
    for (var b = 0; b < level.bins; b++) {
      var x = left + b * level.width * scale, w = level.width * scale + 0.4, y = top + high;
      if (x > left + plot) break;
      w = Math.min(w, left + plot - x);
      sums.forEach(function (sum, n) {
        var h = high * sum[b] / full;
        c.fillStyle = colourOf(data, names[n])[dark];
        c.fillRect(x, y - h, w, h);
        y -= h;
      });
      var h = high * stall[b] / full;
      c.fillStyle = pattern;
      c.fillRect(x, y - h, w, h);
    }
    var exact = data.tiles.filter(function (tile) { return tile.spans; });
    if (data.spans[0] < data.spans[1]) exact.forEach(function (tile) {
      c.fillStyle = ink.ink;
      c.fillRect(left + (tile.x0 - data.extent[0]) * scale, top + high + 1, Math.max(1, (tile.x1 - tile.x0) * scale), 2);
    });
    var a = left + (state.view[0] - data.extent[0]) * scale, z = left + (state.view[1] - data.extent[0]) * scale;
    c.fillStyle = ink.paper;
    c.globalAlpha = 0.62;
    c.fillRect(left, top, Math.max(0, a - left), high);
    c.fillRect(z, top, Math.max(0, left + plot - z), high);
    c.globalAlpha = 1;
    c.strokeStyle = ink.ink;
    c.lineWidth = 1.5;
    c.strokeRect(a, top - 2, Math.max(3, z - a), high + 4);
    c.fillStyle = ink.quiet;
    c.font = "10px " + FONT;
    c.textBaseline = "middle";
    c.textAlign = "right";
    c.fillText("all rows", left - 8, 20, left - 10);
    c.fillText("whole record", left - 8, 33, left - 10);
  };
  function order(data, name) { return data.rows.find(function (row) { return row.name === name; }).order; }
  function colourOf(data, name) { return data.rows.find(function (row) { return row.name === name; }).colour; }

  wsf.paintLegend = function (place, store) {
    var data = store.data, theme = wsf.themeOf(), ink = data.palette[theme], dark = theme === "dark" ? 1 : 0;
    place.textContent = "";
    var roles = [];
    data.rows.forEach(function (row) { if (!roles.some(function (r) { return r[0] === row.name; })) roles.push([row.name, row.colour[dark]]); });
    var entries = roles.slice(0, 8).map(function (r) { return [r[1], "active: " + r[0]]; });
    entries.push(["hatch", "stall: a wait stamped at both ends"], [ink.untracked, "not instrumented: nothing is known about it"]);
    entries.forEach(function (entry) {
      var span = document.createElement("span"), canvas = document.createElement("canvas");
      var made = wsf.canvas(canvas, 26, 12);
      made.c.fillStyle = entry[0] === "hatch" ? hatch(made.c, ink, made.ratio) : entry[0];
      made.c.fillRect(0, 0, 26, 12);
      made.c.strokeStyle = ink.quiet;
      made.c.lineWidth = 0.7;
      made.c.strokeRect(0.35, 0.35, 25.3, 11.3);
      span.appendChild(canvas);
      span.appendChild(document.createTextNode(entry[1]));
      place.appendChild(span);
    });
  };
})();
