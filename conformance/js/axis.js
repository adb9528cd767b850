// One axis in ns for several clocks: nodes, lines, pieces, placing; and the rules that need them. Chapters 7.1 and 10.
import {allPoints} from './points.js';
import {SPEC} from './report.js';
import {group, key} from './rows.js';

const WANDER = 0.15;
const HIGHEST = SPEC.highest_clock;
const NONE = -1;

/** Nodes of one line, after the first reading o: {t, x, low, high, middle}. */
function nodesOf(d, rows) {
  const {t, reference_t: ns, error_ns: error} = d.clock_anchors;
  const sorted = rows.toSorted((a, b) => Number(t[a] - t[b]) || Number(ns[a] - ns[b]));
  const [o, t0] = [ns[sorted[0]], t[sorted[0]]];
  const bounded = rows.every(row => error[row] !== null);
  const nodes = [];
  for (const row of sorted) {
    const [y, e] = [Number(ns[row] - o), bounded ? error[row] : 0];
    const last = nodes.at(-1);
    if (last?.t === t[row]) last.marks.push([y - e, y + e]);
    else nodes.push({t: t[row], x: Number(t[row] - t0), marks: [[y - e, y + e]]});
  }
  let agree = true;
  for (const node of nodes) {
    const lows = node.marks.map(mark => mark[0]), highs = node.marks.map(mark => mark[1]);
    [node.low, node.high] = [Math.max(...lows), Math.min(...highs)];
    if (bounded && node.low > node.high) {
      agree = false;
      [node.low, node.high] = [Math.min(...lows), Math.max(...highs)];
    }
    node.middle = bounded ? (node.low + node.high) / 2 : Math.min(...lows);
  }
  return {o, nodes, bounded, agree};
}

/** Where all lines within the bounds lie at the first and at the last node. */
function fit(nodes) {
  const end = nodes.at(-1).x;
  let [l0, h0, l1, h1] = [-Infinity, Infinity, -Infinity, Infinity];
  for (const i of nodes) {
    for (const j of nodes) {
      if (i.x >= j.x) continue;
      const before = i.x / (j.x - i.x), after = (end - j.x) / (j.x - i.x);
      h0 = Math.min(h0, i.high + (i.high - j.low) * before);
      l0 = Math.max(l0, i.low - (j.high - i.low) * before);
      h1 = Math.min(h1, j.high + (j.high - i.low) * after);
      l1 = Math.max(l1, j.low - (i.high - j.low) * after);
    }
  }
  return {l0, h0, l1, h1};
}

/** The line of one (launch, clock, reference clock) with the pieces of its map. */
function lineOf(d, rows, unit, counts) {
  const {o, nodes, bounded, agree} = nodesOf(d, rows);
  const [first, last] = [nodes[0], nodes.at(-1)];
  let [a0, a1, straight] = [first.middle, last.middle, null];
  if (bounded && nodes.length > 1) {
    const {l0, h0, l1, h1} = fit(nodes);
    straight = agree && l0 <= h0 + 1e-6 && l1 <= h1 + 1e-6;
    if (straight) [a0, a1] = [(l0 + h0) / 2, (l1 + h1) / 2];
  }
  [a0, a1] = [Math.floor(a0 + 0.5), Math.floor(a1 + 0.5)];
  if (a1 < a0) a0 = a1 = Math.floor((a0 + a1) / 2 + 0.5);
  if (!counts) return {straight: null, rate: null, pieces: []};
  const rate = nodes.length > 1 ? (a1 - a0) / last.x : unit === 'ns' ? 1 : null;
  if (rate === null) return {straight: null, rate, pieces: []};
  const off = (node, y) => Math.max(node.high - y, y - node.low);
  const widest = Math.max(...nodes.slice(1).map((node, k) => node.x - nodes[k].x));
  const unchecked = unit === 'cycle' && nodes.length > 1 && (3 * widest > 2 * last.x || straight !== true);
  const wander = unchecked ? WANDER : 0;
  const whole = {from: first.t, to: last.t, ns: o + BigInt(a0), rate, wander,
    error: bounded ? Math.max(...nodes.map(node => off(node, a0 + node.x * rate))) : null};
  if (straight !== false) return {straight, rate, span: last.t - first.t, ns: a1 - a0, pieces: [whole]};
  const at = nodes.map(node => Math.floor(node.middle + 0.5));
  for (let k = 1; k < at.length; ++k) at[k] = Math.max(at[k], at[k - 1]);
  const reach = nodes.map((node, k) => {
    const [before, after] = [nodes.slice(0, k + 1), nodes.slice(k)];
    const low = Math.max(...before.map(n => n.low));
    return low > Math.min(...after.map(n => n.high))
      ? {low: Math.min(...after.map(n => n.low)), high: Math.max(...before.map(n => n.high))} : {low, high: node.high};
  });
  const pieces = nodes.slice(1).map((node, k) => ({
    from: nodes[k].t, to: node.t, ns: o + BigInt(at[k]), rate: (at[k + 1] - at[k]) / (node.x - nodes[k].x), wander,
    error: Math.max(off(reach[k], at[k]), off(reach[k + 1], at[k + 1])),
  }));
  return {straight, rate, span: last.t - first.t, ns: a1 - a0, pieces, error: whole.error};
}

/** All lines, and a function that places a tick: (capture, launch, clock, t) gives {ns, error, rate, reference}, or undefined. */
function axisOf(d) {
  const clocks = group(d.clocks, 'capture_id', 'clock');
  const {capture_id: id, launch, clock, reference_clock: reference} = d.clock_anchors;
  const lines = [], maps = new Map();
  for (const rows of group(d.clock_anchors, 'capture_id', 'launch', 'clock', 'reference_clock').values()) {
    const row = rows[0];
    const unitOf = number => d.clocks.unit[clocks.get(key(id[row], number))?.[0]] ?? 'tick';
    const counts = reference[row] === NONE || unitOf(reference[row]) === 'ns';
    const line = {...lineOf(d, rows, unitOf(clock[row]), counts), row, rows, reference: reference[row]};
    lines.push(line);
    const name = key(id[row], launch[row], clock[row]);
    const rank = line.reference === NONE ? Infinity : line.reference;
    if (line.rate !== null && (!maps.has(name) || rank < maps.get(name).rank)) maps.set(name, {...line, rank});
  }
  const place = (capture, number, ticks, t) => {
    const of = clocks.get(key(capture, ticks))?.[0];
    const step = of === undefined || d.clocks.step_ticks[of] <= 0n ? null : Number(d.clocks.step_ticks[of]);
    const map = maps.get(key(capture, number, ticks)) ?? maps.get(key(capture, -1, ticks));
    if (!map) {
      return d.clocks.unit[of] === 'ns' ? {ns: t, error: step, rate: 1, reference: ticks} : undefined;
    }
    const p = map.pieces.findLast(piece => piece.from <= t) ?? map.pieces[0];
    const beyond = t < p.from ? p.from - t : t > p.to ? t - p.to : 0n;
    const near = beyond || (t - p.from < p.to - t ? t - p.from : p.to - t);
    const grown = p.to > p.from ? 2 * p.error * Number(beyond) / Number(p.to - p.from) : 0;
    const known = step !== null && p.error !== null;
    return {
      ns: p.ns + BigInt(Math.floor(Number(t - p.from) * p.rate + 0.5)), rate: p.rate, reference: map.reference,
      error: known ? p.error + grown + step * p.rate + p.wander * Number(near) * p.rate : null,
    };
  };
  return {lines, place};
}

function rates(d, add) {
  const clocks = group(d.clocks, 'capture_id', 'clock');
  const captures = group(d.captures, 'capture_id');
  for (const {straight, rate, span, ns, error, pieces, row} of axisOf(d).lines) {
    if (straight === false) add('I614', 'clock_anchors', row, 'no straight line fits', 'reference_t');
    const of = clocks.get(key(d.clock_anchors.capture_id[row], d.clock_anchors.clock[row]))?.[0];
    const nominal = d.clocks.hz_nominal[of];
    if (d.clocks.unit[of] === 'cycle' && nominal > 0 && rate > 0 && span >= 10000n && 1e9 / rate > 1.1 * nominal) {
      add('W613', 'clocks', of, `${1e9 / rate} Hz, hz_nominal is ${nominal}`, 'hz_nominal');
    }
    const own = captures.get(key(d.clock_anchors.capture_id[row]))?.[0];
    const bound = error ?? pieces[0]?.error ?? null;
    if (d.clocks.unit[of] !== 'cycle' || own === undefined || bound === null || !(ns > 0)) continue;
    const arch = (d.captures.arch[own] ?? '').replace(/[a-z]$/, '');
    const most = HIGHEST.device[d.captures.device[own]] ?? HIGHEST.arch[arch];
    const least = 1e9 * Number(span) / (ns + 2 * bound);
    if (most && least > 1.02 * most) add('W615', 'clock_anchors', row, `${least} Hz at least`, 'reference_t');
  }
}

/** CTAs by the lane of kind cta that gives them a start and an end. */
function livesOf(d) {
  const {kind, cta, t_start: start, t_end: end} = d.lanes;
  const result = [];
  for (const rows of group(d.lanes, 'capture_id', 'launch', 'cta').values()) {
    const own = rows.filter(row => kind[row] === 'cta' && cta[row] >= 0 && start[row] >= 0n && end[row] >= start[row]);
    if (own.length && own.every(row => d.lanes.clock[row] === d.lanes.clock[own[0]])) result.push(own[0]);
  }
  return result;
}

function residency(d, add) {
  const most = new Map();
  const a = d.attributes;
  for (let row = 0; row < a.n; row++) {
    const value = Number(a.value[row]);
    if (a.table_name[row] === 'launches' && a.name[row] === 'max_ctas_per_sm' && Number.isInteger(value) && value > 0) {
      most.set(key(a.capture_id[row], a.row_key[row]), value);
    }
  }
  const bySm = new Map();
  const {capture_id: id, launch, sm, clock, t_start: start, t_end: end} = d.lanes;
  for (const row of livesOf(d)) {
    if (sm[row] < 0 || end[row] === start[row]) continue;
    const name = key(id[row], launch[row], sm[row], clock[row]);
    bySm.set(name, [...bySm.get(name) ?? [], row]);
  }
  for (const rows of bySm.values()) {
    const turns = rows.flatMap(row => [[start[row], 1], [end[row], 0]]).sort((x, y) => Number(x[0] - y[0]) || x[1] - y[1]);
    let held = 0, peak = 0;
    for (const [, begins] of turns) peak = Math.max(peak, held += begins ? 1 : -1);
    const fits = most.get(key(id[rows[0]], `${launch[rows[0]]}`)) ?? 32;
    if (peak > fits) add('E610', 'lanes', rows[0], `${peak} CTAs at once on SM ${sm[rows[0]]}, ${fits} fit`, 't_start');
  }
}

function lengths(d, add) {
  const {place} = axisOf(d);
  const launches = group(d.launches, 'capture_id', 'launch');
  const lanes = group(d.lanes, 'capture_id', 'lane');
  const check = (lane, from, to, what) => {
    const [id, launch, clock] = ['capture_id', 'launch', 'clock'].map(name => d.lanes[name][lane]);
    const of = launches.get(key(id, launch))?.[0];
    if (of === undefined || d.launches.duration_ns[of] < 0n) return;
    const [a, b] = [from, to].map(t => place(id, launch, clock, t));
    if (!a || a.error === null || b.error === null) return;
    if (Number(b.ns - a.ns - d.launches.duration_ns[of]) > 2 * Math.max(a.error, b.error)) {
      add('W611', 'launches', of, `${what} lasts ${b.ns - a.ns} ns`, 'duration_ns');
    }
  };
  for (const lane of livesOf(d)) check(lane, d.lanes.t_start[lane], d.lanes.t_end[lane], `CTA ${d.lanes.cta[lane]}`);
  const ends = new Map();
  const reach = (capture, lane, t) => {
    const [low, high] = ends.get(key(capture, lane)) ?? [t, t];
    ends.set(key(capture, lane), [t < low ? t : low, t > high ? t : high]);
  };
  for (const {capture, lane, t} of allPoints(d)) reach(capture, lane, t);
  const s = d.spans;
  for (let row = 0; row < s.n; row++) reach(s.capture_id[row], s.end_lane[row], s.t1[row]);
  for (const [name, [from, to]] of ends) {
    const lane = lanes.get(name)?.[0];
    if (lane !== undefined) check(lane, from, to, `lane ${d.lanes.lane[lane]}`);
  }
}

/** Cluster of a CTA, -1 where there is none. */
function clusterOf(k, row, cta) {
  if (row === undefined) return NONE;
  const [g, c] = ['grid', 'cluster'].map(what => ['x', 'y', 'z'].map(axis => k[`${what}_${axis}`][row]));
  if ([...g, ...c].some(size => size <= 0) || g.some((size, i) => size % c[i]) || c[0] * c[1] * c[2] < 2) return NONE;
  const at = [cta % g[0], Math.floor(cta / g[0]) % g[1], Math.floor(cta / (g[0] * g[1]))];
  const [x, y, z] = at.map((place, i) => Math.floor(place / c[i]));
  return x + g[0] / c[0] * (y + g[1] / c[1] * z);
}

function across(d, add) {
  const e = d.dependencies;
  const wide = [...Array(e.n).keys()].filter(row =>
    ['cluster', 'device'].includes(e.scope[row]) && e.producer_step[row] > 0 && e.consumer_step[row] > 0);
  if (!wide.length) return;
  const {place} = axisOf(d);
  const lanes = group(d.lanes, 'capture_id', 'lane'), launches = group(d.launches, 'capture_id', 'launch');
  const found = new Map();
  for (const point of allPoints(d)) {
    const lane = lanes.get(key(point.capture, point.lane))?.[0];
    if (lane === undefined || d.lanes.cta[lane] < 0 || point.iteration < 0) continue;
    const launch = d.lanes.launch[lane];
    const at = place(point.capture, launch, d.lanes.clock[lane], point.t);
    if (!at || at.error === null) continue;
    const cluster = clusterOf(d.launches, launches.get(key(point.capture, launch))?.[0], d.lanes.cta[lane]);
    for (const team of [['device', 0], ...cluster < 0 ? [] : [['cluster', cluster]]]) {
      const name = key(point.capture, ...team, point.role, point.name);
      found.set(name, [...found.get(name) ?? [], {...at, launch, iteration: point.iteration}]);
    }
  }
  for (const row of wide) {
    for (const [name, sent] of found) {
      const tail = key(e.producer_role[row], e.producer_event[row]), head = `${key(e.capture_id[row], e.scope[row])}|`;
      if (!name.startsWith(head) || !name.endsWith(`|${tail}`)) continue;
      const over = found.get(name.slice(0, -tail.length) + key(e.consumer_role[row], e.consumer_event[row])) ?? [];
      for (const p of sent) {
        const units = e.producer_step[row] * p.iteration + e.iteration_lag[row];
        const late = over.find(c => c.launch === p.launch && c.reference === p.reference &&
          e.consumer_step[row] * c.iteration === units && Number(p.ns - c.ns) > p.error + c.error + 256 * c.rate);
        if (late) add('E612', 'dependencies', row, `${p.ns - late.ns} ns after its effect`, 'iteration_lag');
      }
    }
  }
}

export const RULES = [
  {codes: ['W613', 'I614', 'W615'], needs: ['captures', 'clocks', 'clock_anchors'], run: rates},
  {codes: ['E610'], needs: ['lanes', 'attributes'], run: residency},
  {codes: ['W611'], needs: ['launches', 'lanes', 'clocks', 'clock_anchors', 'events', 'spans'], run: lengths},
  {codes: ['E612'], needs: ['dependencies', 'events', 'spans', 'lanes', 'clocks', 'clock_anchors'], run: across},
];
