// Family 6: clocks and anchors. Chapter 7.
import {group, key, keyed} from './rows.js';

const clocksOf = d => group(d.clocks, 'capture_id', 'clock');

/** Reference clocks of a clock: those of its anchors for the launch, and for the whole capture. */
function referencesOf(d) {
  const result = new Map();
  const {capture_id: id, launch, clock, reference_clock: reference} = d.clock_anchors;
  for (let row = 0; row < d.clock_anchors.n; row++) {
    const name = key(id[row], launch[row], clock[row]);
    if (!result.has(name)) result.set(name, new Set());
    result.get(name).add(reference[row]);
  }
  return (capture, lane, number) =>
    new Set([lane, -1].flatMap(launchNumber => [...result.get(key(capture, launchNumber, number)) ?? []]));
}

function crossClock(d, add) {
  const lanes = group(d.lanes, 'capture_id', 'lane');
  const references = referencesOf(d);
  const {capture_id: id, clock, launch} = d.spans;
  for (const [row, end] of keyed(d.spans, 'capture_id', 'end_lane')) {
    const lane = lanes.get(end)?.[0];
    if (lane === undefined || d.lanes.clock[lane] === clock[row]) continue;
    const [a, b] = [clock[row], d.lanes.clock[lane]].map(number => references(id[row], launch[row], number));
    if (![...a].some(reference => b.has(reference))) {
      add('E602', 'spans', row, `clock ${clock[row]} and clock ${d.lanes.clock[lane]} have no common reference`, 'end_lane');
    }
  }
}

function rates(d, add) {
  const implausible = hz => hz < 1e8 || hz > 5e9;
  const clocks = clocksOf(d);
  const {hz_nominal: nominal, unit} = d.clocks;
  for (let row = 0; row < d.clocks.n; row++) {
    if (unit[row] === 'cycle' && nominal[row] !== null && implausible(nominal[row])) {
      add('W603', 'clocks', row, `${nominal[row]} Hz`, 'hz_nominal');
    }
  }
  const {t, reference_t: ns, clock, capture_id: id} = d.clock_anchors;
  for (const rows of group(d.clock_anchors, 'capture_id', 'launch', 'clock', 'reference_clock').values()) {
    const of = clocks.get(key(id[rows[0]], clock[rows[0]]))?.[0];
    if (of === undefined || unit[of] !== 'cycle') continue;
    const sorted = rows.toSorted((a, b) => Number(t[a] - t[b]) || Number(ns[a] - ns[b]));
    const [first, last] = [sorted[0], sorted.at(-1)];
    const hz = Number(t[last] - t[first]) / Number(ns[last] - ns[first]) * 1e9;
    if (t[last] > t[first] && ns[last] > ns[first] && implausible(hz)) {
      add('W603', 'clock_anchors', last, `${hz} Hz between the first and the last anchor`, 't');
    }
  }
}

function anchors(d, add) {
  const {t, reference_t: ns, clock, reference_clock: reference, capture_id: id} = d.clock_anchors;
  for (const rows of group(d.clock_anchors, 'capture_id', 'launch', 'clock', 'reference_clock').values()) {
    const sorted = rows.toSorted((a, b) => t[a] < t[b] ? -1 : t[a] > t[b] ? 1 : 0);
    for (let i = 1; i < sorted.length; i++) {
      const [a, b] = [sorted[i - 1], sorted[i]];
      if (t[b] > t[a] && ns[b] < ns[a]) add('E604', 'clock_anchors', b, `reference ${ns[b]} after ${ns[a]}`, 'reference_t');
    }
  }
  const clocks = clocksOf(d);
  for (let row = 0; row < d.clock_anchors.n; row++) {
    if (clock[row] === reference[row]) add('E607', 'clock_anchors', row, `clock ${clock[row]}`, 'reference_clock');
    const of = reference[row] === -1 ? undefined : clocks.get(key(id[row], reference[row]))?.[0];
    // An anchor to itself is E607 alone.
    if (of !== undefined && clock[row] !== reference[row] && d.clocks.unit[of] !== 'ns') {
      add('E606', 'clock_anchors', row, `clock ${reference[row]} counts ${d.clocks.unit[of]}`, 'reference_clock');
    }
  }
}

function oneSm(d, add) {
  const clocks = clocksOf(d);
  for (const [name, rows] of group(d.lanes, 'capture_id', 'clock')) {
    const of = clocks.get(name)?.[0];
    if (of === undefined || d.clocks.scope[of] !== 'sm') continue;
    const named = d.clocks.sm[of];
    const known = rows.filter(row => d.lanes.sm[row] !== -1);
    const wrong = known.find(row => d.lanes.sm[row] !== (named === -1 ? d.lanes.sm[known[0]] : named));
    if (wrong !== undefined) {
      add('E608', 'lanes', wrong, `SM ${d.lanes.sm[wrong]}, clock ${d.lanes.clock[wrong]} is of another`, 'clock');
    }
  }
}

function assumed(d, add) {
  d.clocks.assumption.forEach((text, row) => {
    if (text) add('I609', 'clocks', row, text, 'assumption');
  });
}

function steps(d, add) {
  const clocks = clocksOf(d);
  for (const rows of group(d.events, 'capture_id', 'lane').values()) {
    const {capture_id: id, clock, t} = d.events;
    const of = clocks.get(key(id[rows[0]], clock[rows[0]]))?.[0];
    const step = of === undefined ? -1n : d.clocks.step_ticks[of];
    if (step <= 1n) continue;
    const wrong = rows.find(row => (t[row] - t[rows[0]]) % step !== 0n);
    if (wrong !== undefined) add('W605', 'events', wrong, `not a multiple of ${step} ticks`, 't');
  }
}

export const RULES = [
  {codes: ['E602'], needs: ['spans', 'lanes', 'clock_anchors'], run: crossClock},
  {codes: ['W603'], needs: ['clocks', 'clock_anchors'], run: rates},
  {codes: ['E604', 'E606', 'E607'], needs: ['clocks', 'clock_anchors'], run: anchors},
  {codes: ['E608'], needs: ['clocks', 'lanes'], run: oneSm},
  {codes: ['I609'], needs: ['clocks'], run: assumed},
  {codes: ['W605'], needs: ['clocks', 'events'], run: steps},
];
