// Points of lanes and pairing. Chapter 8.
import {group, key, keyed, roleOf} from './rows.js';

/** Every point: {table, row, capture, lane, role, name, iteration, t}. */
export function allPoints(d) {
  const result = [];
  const {events: e, spans: s} = d;
  const lanes = group(d.lanes, 'capture_id', 'lane');
  for (const [row, lane] of keyed(e, 'capture_id', 'lane')) {
    const role = roleOf(d, lanes, lane, e.role[row]);
    result.push({table: 'events', row, capture: e.capture_id[row], lane: e.lane[row], role,
      name: e.event[row], iteration: e.iteration[row], t: e.t[row]});
  }
  for (const [row, lane] of keyed(s, 'capture_id', 'lane')) {
    const role = roleOf(d, lanes, lane, s.role[row]);
    const point = {table: 'spans', row, capture: s.capture_id[row], role, iteration: s.iteration[row]};
    result.push({...point, lane: s.lane[row], name: `${s.span[row]}.begin`, t: s.t0[row]});
    if (s.complete[row]) result.push({...point, lane: s.end_lane[row], name: `${s.span[row]}.end`, t: s.t1[row]});
  }
  return result;
}

/**
 * Spans paired from points, and what does not pair: calls onPair(type row, begin, end) and onOrphan(type row, points)
 * for each span type with two points, lane of its role and iteration.
 */
export function pairUp(d, points, onPair, onOrphan) {
  const types = d.span_types;
  const byName = new Map();
  for (let row = 0; row < types.n; row++) {
    for (const [end, column] of [['begin', 'begin_event'], ['end', 'end_event']]) {
      if (!types.begin_event[row] || !types.end_event[row]) continue;
      const name = key(types.capture_id[row], types.role[row], types[column][row]);
      if (!byName.has(name)) byName.set(name, []);
      byName.get(name).push({row, end});
    }
  }
  const lanes = group(d.lanes, 'capture_id', 'lane');
  const pairs = new Map();
  for (const point of points) {
    const lane = lanes.get(key(point.capture, point.lane))?.[0];
    const role = lane === undefined ? point.role : d.lanes.role[lane];
    for (const {row, end} of byName.get(key(point.capture, role, point.name)) ?? []) {
      const name = key(row, point.lane, point.iteration);
      if (!pairs.has(name)) pairs.set(name, {row, begin: [], end: []});
      pairs.get(name)[end].push(point);
    }
  }
  for (const {row, begin, end} of pairs.values()) {
    if (begin.length === 1 && end.length === 1) onPair(row, begin[0], end[0]);
    else onOrphan(row, [...begin, ...end]);
  }
}
