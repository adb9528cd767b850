// Family 7: what records say about each other. Chapters 6, 8, 10, 14.
import {RULES as AXIS} from './axis.js';
import {RULES as CLOCKS} from './clocks.js';
import {RULES as KEYS} from './keys.js';
import {RULES as BUDGETS} from './budgets.js';
import {FORMS} from './values.js';
import {allPoints, pairUp} from './points.js';
import {columnsOf, group, key, keyed} from './rows.js';

const EARLY = 256n;

function stamps(d, add) {
  const {iteration, t} = d.events;
  for (const rows of group(d.events, 'capture_id', 'lane', 'event').values()) {
    const sorted = rows.toSorted((a, b) => iteration[a] - iteration[b]);
    for (let i = 1; i < sorted.length; i++) {
      const [a, b] = [sorted[i - 1], sorted[i]];
      if (iteration[a] === iteration[b]) add('E704', 'events', b, `a second stamp of iteration ${iteration[b]}`, 'event');
      else if (t[b] < t[a]) add('E403', 'events', b, `${t[b]} after ${t[a]} of an earlier iteration`, 't');
    }
  }
  for (const rows of group(d.spans, 'capture_id', 'lane', 'span', 'iteration').values()) {
    if (rows.length > 1) add('E704', 'spans', rows[1], 'a second span of one iteration', 'span');
  }
}

function payloads(d, add) {
  const types = group(d.event_types, 'capture_id', 'role', 'event');
  const {capture_id: id, role, event, payload} = d.events;
  for (let row = 0; row < d.events.n; row++) {
    if (!payload[row]) continue;
    const type = types.get(key(id[row], role[row] ?? '', event[row]))?.[0];
    const form = type === undefined ? null : FORMS[d.event_types.payload_type[type]];
    if (form && !form(payload[row])) add('E410', 'events', row, `'${payload[row]}'`, 'payload');
  }
}

function pairing(d, add) {
  const points = allPoints(d);
  const occurs = new Set(), recording = new Set();
  for (let row = 0; row < d.spans.n; row++) {
    occurs.add(key(d.spans.capture_id[row], d.spans.role[row] ?? '', d.spans.span[row]));
    if (d.spans.t1[row] < d.spans.t0[row]) add('E701', 'spans', row, `ends ${d.spans.t0[row] - d.spans.t1[row]} early`, 't1');
  }
  const recorded = new Set();
  for (const point of points) {
    recording.add(key(point.capture, point.role));
    recorded.add(key(point.capture, point.role, point.name));
  }
  const {capture_id: id, role, span} = d.span_types;
  pairUp(d, points, (type, begin, end) => {
    if (end.t < begin.t) add('E702', end.table, end.row, `${span[type]} ends ${begin.t - end.t} ticks before it begins`);
  }, (type, [point, another]) => {
    // Points of one name that occur twice are E704 alone.
    if (another === undefined) add('I706', point.table, point.row, `${point.name} of ${span[type]} has no partner`);
  });
  for (const [row, type] of keyed(d.span_types, 'capture_id', 'role', 'span')) {
    const both = ['begin_event', 'end_event'].every(end => {
      const name = d.span_types[end][row];
      return name && recorded.has(key(id[row], role[row], name));
    });
    if (recording.has(key(id[row], role[row])) && !occurs.has(type) && !both) {
      add('W705', 'span_types', row, `${span[row]} never occurs`, 'span');
    }
  }
}

function dependencies(d, add) {
  const lanes = group(d.lanes, 'capture_id', 'lane');
  const at = new Map();
  const place = point => {
    const lane = lanes.get(key(point.capture, point.lane))?.[0];
    return lane === undefined ? null : [d.lanes.launch[lane], d.lanes.cta[lane], d.lanes.clock[lane]];
  };
  const points = allPoints(d).map(point => ({...point, place: place(point)})).filter(point => point.place);
  for (const {capture, role, name, iteration, lane, t, place: where} of points) {
    for (const own of ['any', lane]) {
      const signal = key(capture, ...where, role, name, iteration, own);
      if (!at.has(signal) || at.get(signal) < t) at.set(signal, t);
    }
  }
  const into = group(d.dependencies, 'capture_id', 'consumer_role', 'consumer_event');
  const {producer_role, producer_event, producer_step, consumer_step, iteration_lag, scope, mechanism} = d.dependencies;
  for (const point of points) {
    for (const row of into.get(key(point.capture, point.role, point.name)) ?? []) {
      const n = consumer_step[row] * point.iteration - iteration_lag[row];
      if (scope[row] !== 'cta' || producer_step[row] <= 0 || n < 0 || n % producer_step[row]) continue;
      const own = mechanism[row] === 'commit' && producer_role[row] === point.role ? point.lane : 'any';
      const signal = at.get(key(point.capture, ...point.place, producer_role[row], producer_event[row],
        n / producer_step[row], own));
      if (signal !== undefined && point.t < signal - EARLY) {
        add('E703', point.table, point.row, `${point.name} lies ${signal - point.t} ticks before its signal`);
      }
    }
  }
}

function dependencyRows(d, add) {
  const {producer_step: a, consumer_step: b, capture_id: id, consumer_role: role, consumer_event: event} = d.dependencies;
  const ends = new Set();
  for (let row = 0; row < d.dependencies.n; row++) {
    ends.add(key(id[row], role[row], event[row]));
    if ((a[row] === 0) !== (b[row] === 0)) add('E714', 'dependencies', row, `steps ${a[row]} and ${b[row]}`, 'producer_step');
    else if (a[row] === 0) add('I713', 'dependencies', row, 'the mapping of iterations is unknown', 'producer_step');
  }
  const s = d.span_types;
  for (let row = 0; row < s.n; row++) {
    const [begin, end] = [s.begin_event[row] || '', s.end_event[row] || ''];
    if ((begin === '') !== (end === '') || (begin !== '' && begin === end)) {
      add('E720', 'span_types', row, `from '${begin}' to '${end}'`, 'end_event');
    } else if (s.state[row] === 'stall' && s.wait_on[row] === 'barrier' &&
        !ends.has(key(s.capture_id[row], s.role[row], end || `${s.span[row]}.end`))) {
      add('I719', 'span_types', row, `no dependency into the end of ${s.span[row]}`, 'span');
    }
  }
}

/** Rows of events and spans of each lane, and its last record. */
function recordsOf(d) {
  const result = new Map();
  const of = name => {
    if (!result.has(name)) result.set(name, {kept: 0n, last: -1n, stamps: []});
    return result.get(name);
  };
  const later = (record, t) => { if (t > record.last) record.last = t; };
  for (const [row, lane] of keyed(d.events, 'capture_id', 'lane')) {
    const record = of(lane);
    record.kept++;
    record.stamps.push(row);
    later(record, d.events.t[row]);
  }
  for (const [row, lane] of keyed(d.spans, 'capture_id', 'lane')) {
    const {capture_id: id, end_lane: end, t0, t1, complete} = d.spans;
    of(lane).kept++;
    later(of(lane), t0[row]);
    if (complete[row]) later(of(key(id[row], end[row])), t1[row]);
  }
  return result;
}

function lanes(d, add) {
  const records = recordsOf(d);
  const say = (code, row, message, column) => add(code, 'lanes', row, message, column);
  const l = d.lanes;
  for (const [row, lane] of keyed(l, 'capture_id', 'lane')) {
    const {kept = 0n} = records.get(lane) ?? {};
    const [expected, stated, lost] = [l.records_expected[row], l.records_kept[row], l.records_lost[row]];
    if (stated !== -1n && stated !== kept) say('E708', row, `records_kept ${stated}, there are ${kept}`, 'records_kept');
    const fewer = expected >= 0n && (stated >= 0n ? stated : kept) < expected;
    if (l.completeness[row] === 'complete' && (lost > 0n || fewer)) {
      say('E707', row, `complete, yet lost ${lost} and kept ${stated} of ${expected}`, 'completeness');
    }
    const [start, end] = [l.t_start[row], l.t_end[row]];
    if (start >= 0n && end >= 0n && end < start) say('E712', row, `ends ${start - end} ticks early`, 't_end');
  }
  const order = ['truncated', 'unknown', 'sampled', 'complete'];
  const captures = group(d.captures, 'capture_id');
  for (const [id, rows] of group(l, 'capture_id')) {
    const capture = captures.get(id)?.[0];
    if (capture === undefined) continue;
    const worst = order[Math.min(...rows.map(row => order.indexOf(l.completeness[row])))];
    const lost = rows.map(row => l.records_lost[row]);
    const sum = lost.includes(-1n) ? -1n : lost.reduce((a, b) => a + b, 0n);
    const {completeness, lost_events: stated} = d.captures;
    if (worst && completeness[capture] !== worst) {
      add('E709', 'captures', capture, `${completeness[capture]}, a lane is ${worst}`, 'completeness');
    }
    if (stated[capture] !== sum) add('E710', 'captures', capture, `${stated[capture]}, the lanes lost ${sum}`, 'lost_events');
  }
  const {complete, t1} = d.spans;
  for (const [row, lane] of keyed(d.spans, 'capture_id', 'lane')) {
    const {last} = records.get(lane);
    if (!complete[row] && t1[row] !== last) add('E727', 'spans', row, `t1 ${t1[row]}, the last record is ${last}`, 't1');
  }
}

function lifetimes(d, add) {
  const l = d.lanes;
  const own = group(l, 'capture_id', 'lane');
  const ctas = new Map();
  for (const [row, name] of keyed(l, 'capture_id', 'launch', 'cta', 'clock')) if (l.kind[row] === 'cta') ctas.set(name, row);
  const look = (table, row, lane, t, column) => {
    const of = own.get(lane)?.[0];
    if (of === undefined) return;
    const cta = ctas.get(key(l.capture_id[of], l.launch[of], l.cta[of], l.clock[of]));
    for (const around of new Set([of, cta])) {
      if (around === undefined) continue;
      const [start, end] = [l.t_start[around], l.t_end[around]];
      if ((start >= 0n && t < start) || (end >= 0n && t > end)) {
        add('E711', table, row, `${t} is outside ${start} to ${end} of lane ${l.lane[around]}`, column);
        return;
      }
    }
  };
  for (const [row, lane] of keyed(d.events, 'capture_id', 'lane')) look('events', row, lane, d.events.t[row], 't');
  for (const [row, lane] of keyed(d.spans, 'capture_id', 'lane')) {
    look('spans', row, lane, d.spans.t0[row], 't0');
    // The end lies on the row's clock: only on the same lane is it known to be that of the lane's lifetime.
    if (d.spans.end_lane[row] === d.spans.lane[row]) look('spans', row, lane, d.spans.t1[row], 't1');
  }
}

function loops(d, add) {
  const launches = group(d.launches, 'capture_id', 'launch');
  const laneRows = group(d.lanes, 'capture_id', 'lane');
  const types = group(d.event_types, 'capture_id', 'role', 'event');
  const {capture_id: id, role, event, iteration} = d.events;
  const inLoop = row => {
    const type = types.get(key(id[row], role[row] ?? '', event[row]))?.[0];
    const loop = type === undefined ? '' : d.event_types.loop[type];
    return Boolean(loop) && loop !== 'once';
  };
  for (const [name, {stamps: rows}] of recordsOf(d)) {
    const lane = laneRows.get(name)?.[0];
    if (lane === undefined || !rows.length) continue;
    const launch = launches.get(key(id[rows[0]], d.lanes.launch[lane]))?.[0];
    const [slots, trips, kind] = ['slots', 'trip_count', 'kind'].map(column => launch === undefined ? -1 : d.launches[column][launch]);
    const complete = d.lanes.completeness[lane] === 'complete';
    const beyond = slots < 0 ? undefined : rows.find(row => iteration[row] >= slots);
    if (kind === 'clean') add('E724', 'events', rows[0], 'a stamp of a clean launch', 'launch', rows.length);
    if (beyond !== undefined) add('E722', 'events', beyond, `iteration ${iteration[beyond]} of ${slots} slots`, 'iteration');
    if (!complete) continue;
    const filled = slots > 0 && rows.some(row => iteration[row] === slots - 1 && inLoop(row));
    if (filled && trips > slots) {
      add('E723', 'lanes', lane, `complete, yet ${trips} iterations went over ${slots} slots`, 'completeness');
    }
    const seen = new Map();
    for (const row of rows) {
      if (!inLoop(row)) continue;
      if (!seen.has(event[row])) seen.set(event[row], []);
      seen.get(event[row]).push(iteration[row]);
    }
    for (const [what, numbers] of seen) {
      const [least, most] = numbers.reduce(([a, b], n) => [Math.min(a, n), Math.max(b, n)], [Infinity, -1]);
      if (new Set(numbers).size !== most - least + 1) add('I721', 'lanes', lane, `${what} misses an iteration`, 'lane');
    }
  }
}

function places(d, add) {
  const launches = group(d.launches, 'capture_id', 'launch'), captures = group(d.captures, 'capture_id');
  const {capture_id: id, launch, cta, sm} = d.lanes;
  for (let row = 0; row < d.lanes.n; row++) {
    const of = launches.get(key(id[row], launch[row]))?.[0];
    const grid = of === undefined ? [-1] : ['grid_x', 'grid_y', 'grid_z'].map(column => d.launches[column][of]);
    const size = grid.reduce((a, b) => a * BigInt(b), 1n);
    if (grid.every(n => n >= 0) && BigInt(cta[row]) >= size) add('E725', 'lanes', row, `CTA ${cta[row]} of ${size}`, 'cta');
    const capture = captures.get(key(id[row]))?.[0];
    const count = capture === undefined ? -1 : d.captures.sm_count[capture];
    if (count >= 0 && sm[row] >= count) add('W726', 'lanes', row, `SM ${sm[row]} of ${count}`, 'sm');
  }
}

const RULES = [
  ...KEYS, ...CLOCKS, ...AXIS, ...BUDGETS,
  {codes: ['E403', 'E704'], needs: ['events', 'spans'], run: stamps},
  {codes: ['E410'], needs: ['events', 'event_types'], run: payloads},
  {codes: ['E701', 'E702', 'I706', 'W705'], needs: ['events', 'spans', 'lanes', 'span_types'], run: pairing},
  {codes: ['E703'], needs: ['events', 'spans', 'lanes', 'dependencies'], run: dependencies},
  {codes: ['E714', 'E720', 'I713', 'I719'], needs: ['dependencies', 'span_types'], run: dependencyRows},
  {codes: ['E707', 'E708', 'E709', 'E710', 'E712', 'E727'], needs: ['captures', 'lanes', 'events', 'spans'], run: lanes},
  {codes: ['E711'], needs: ['lanes', 'events', 'spans'], run: lifetimes},
  {codes: ['E722', 'E723', 'E724', 'I721'], needs: ['events', 'spans', 'lanes', 'launches', 'event_types'], run: loops},
  {codes: ['E725', 'W726'], needs: ['lanes', 'launches', 'captures'], run: places},
];

/** Runs the rules over rows of the standard's tables; a rule whose tables cannot be trusted is named as not run. */
export function checkMeaning(manifest, tables, report) {
  const d = columnsOf(manifest, tables);
  const add = (code, table, row, message, column, count) => report.add(code, message, {table, row, column, count});
  const anyBroken = Object.keys(d).find(name => d[name].broken);
  for (const {codes, needs, run} of RULES) {
    const broken = needs.find(name => d[name].broken);
    if (broken) report.skip(codes, `the table ${broken} cannot be relied on`);
    else run(d, add, {manifest, tables});
    // A rule over all tables runs over those that are left.
    if (anyBroken && !needs.length) report.skip(codes, `not for the table ${anyBroken}, which cannot be relied on`);
  }
}
