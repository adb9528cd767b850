// Tables as columns for the rules over several tables, and which of them can be trusted.
import {SPEC} from './report.js';

/** One text for several values; texts carry their length, so that no two lists of values share a key. */
export const key = (...parts) =>
  parts.map(part => typeof part === 'string' ? `${part.length}:${part}` : `${part}`).join('|');

/** Columns of each table of the standard by name, with `n` rows; `broken` where a rule may not rely on it. */
export function columnsOf(manifest, tables) {
  const result = {};
  for (const [name, {columns}] of Object.entries(SPEC.tables)) {
    const table = tables.get(name);
    const listed = Object.hasOwn(manifest.tables, name);
    const broken = table ? !table.sound : listed || name === 'captures';
    const view = result[name] = {n: broken || !table ? 0 : table.rows, broken};
    for (const column of columns) view[column.name] = view.n ? table.columns.get(column.name)?.values ?? [] : [];
  }
  return result;
}

/** Row numbers of a table by the key of some of its columns. */
export function group(view, ...columns) {
  const result = new Map();
  for (let row = 0; row < view.n; row++) {
    const name = key(...columns.map(column => view[column][row]));
    const rows = result.get(name);
    if (rows) rows.push(row);
    else result.set(name, [row]);
  }
  return result;
}

/** Each row number with its key. */
export function* keyed(view, ...columns) {
  for (let row = 0; row < view.n; row++) yield [row, key(...columns.map(column => view[column][row]))];
}

/** Role of a record: that of its lane, whose copy the record holds; its own where the lane is not there. */
export function roleOf(d, lanes, lane, own) {
  const row = lanes.get(lane)?.[0];
  return (row === undefined ? own : d.lanes.role[row]) ?? '';
}

/** Order of two texts by their UTF-8 bytes, which is that of their code points; JavaScript's own is by UTF-16. */
export function compareText(a, b) {
  if (a === b) return 0;
  for (let i = 0; i < a.length && i < b.length;) {
    const x = a.codePointAt(i), y = b.codePointAt(i);
    if (x !== y) return x - y;
    i += x > 0xffff ? 2 : 1;
  }
  return a.length - b.length;
}

export function compare(a, b) {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}
