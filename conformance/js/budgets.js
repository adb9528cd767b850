// Family 7 for predictions and metrics. Chapters 6.13 and 6.14.
import {group} from './rows.js';

const CLOSE = 1e-6;
const near = (a, b) => Math.abs(a - b) <= CLOSE * Math.max(Math.abs(a), Math.abs(b));

function predictions(d, add) {
  const {work, rate, cycles, role, is_bottleneck: marked, idle_lower_bound: idle} = d.predictions;
  const say = (code, row, message, column) => add(code, 'predictions', row, message, column);
  for (let row = 0; row < d.predictions.n; row++) {
    const [w, r, c] = [work[row], rate[row], cycles[row]];
    if (w !== null && r !== null && c !== null && !near(c * r, w)) say('E716', row, `${c} cycles for ${w} at ${r}`, 'cycles');
    if (role[row] !== '' && marked[row]) say('E717', row, 'the row of one role is marked', 'is_bottleneck');
  }
  for (const rows of group(d.predictions, 'capture_id', 'loop').values()) {
    const totals = rows.filter(row => role[row] === '' && cycles[row] !== null);
    const most = totals.reduce((a, row) => Math.max(a, cycles[row]), -Infinity);
    for (const row of totals) {
      if (marked[row] !== (cycles[row] === most)) say('E717', row, `${cycles[row]} cycles, the most are ${most}`, 'is_bottleneck');
      const bound = 1 - cycles[row] / most;
      if (idle[row] !== null && most > 0 && Math.abs(idle[row] - bound) > CLOSE) {
        say('E718', row, `${idle[row]}, by the cycles it is ${bound}`, 'idle_lower_bound');
      }
    }
  }
}

function metrics(d, add) {
  const {value, null_reason: reason} = d.metrics;
  for (let row = 0; row < d.metrics.n; row++) {
    if ((value[row] === null) !== (reason[row] !== '')) {
      add('E715', 'metrics', row, `value ${value[row]}, null_reason '${reason[row]}'`, 'null_reason');
    }
  }
}

export const RULES = [
  {codes: ['E716', 'E717', 'E718'], needs: ['predictions'], run: predictions},
  {codes: ['E715'], needs: ['metrics'], run: metrics},
];
