// Reads table files with a JavaScript reader and prints what it made of them, for tests/readers_js.py.
// node readers.js READER < {"files": {KEY: PATH}, "kinds": {KEY: {COLUMN: TYPE}}, "ask": {BUNDLE: {TABLE: KEY}}}
import {createHash} from 'node:crypto';
import {readFileSync} from 'node:fs';

const text = value => new TextDecoder().decode(value);

/** Columns of one file: name -> {kind, values}; each reader in the way that its own documentation shows. */
const READERS = {
  async hyparquet() {
    const {parquetMetadata, parquetReadObjects} = await import('hyparquet');
    const {compressors} = await import('hyparquet-compressors');
    return async path => {
      const bytes = readFileSync(path);
      const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
      const {schema: [, ...columns]} = parquetMetadata(file);
      const rows = await parquetReadObjects({file, compressors});
      return Object.fromEntries(columns.map(({name}) => {
        const values = rows.map(row => row[name]);
        return [name, {kind: kindOf(values), values}];
      }));
    };
  },
  async 'parquet-wasm'() {
    const {default: wasm} = await import('parquet-wasm/node');
    const {tableFromIPC} = await import('apache-arrow');
    return async path => {
      const table = tableFromIPC(wasm.readParquet(readFileSync(path)).intoIPCStream());
      return Object.fromEntries(table.schema.fields.map(({name, type}) => {
        const column = table.getChild(name);
        return [name, {kind: `${type}`, values: [...column]}];
      }));
    };
  },
};

function kindOf(values) {
  const known = values.find(value => value !== null && value !== undefined);
  return known === undefined ? null : typeof known;
}

function digest(kind, values) {
  const hex = word => BigInt.asUintN(64, word).toString(16).padStart(16, '0');
  let count = 0, nulls = 0, sum = 0n, xor = 0n;
  const words = new Map();
  const double = new DataView(new ArrayBuffer(8));
  const word = value => {
    if (kind === 'STRING') {
      if (!words.has(value)) words.set(value, createHash('sha256').update(value).digest().readBigUInt64BE());
      return words.get(value);
    }
    if (kind !== 'DOUBLE') return BigInt(value);
    double.setFloat64(0, value);
    return double.getBigInt64(0);
  };
  const nullAs = new Set();
  for (const value of values) {
    if (value === null || value === undefined) {
      nulls++;
      nullAs.add(`${value}`);
      continue;
    }
    count++;
    const bits = word(value);
    sum += bits;
    xor ^= bits;
  }
  return {nulls, null_as: [...nullAs], digest: [count, hex(sum), hex(xor)]};
}

/** The three aggregates for readers without SQL. */
function answers({events, lanes, span_types: types}) {
  const grouped = new Map();
  const group = (name, role, what) => {
    const key = JSON.stringify([name, role, what]);
    if (!grouped.has(key)) grouped.set(key, {name, role, what, n: 0, least: null, most: null, sum: 0n});
    return grouped.get(key);
  };
  const points = new Map();
  const at = (...parts) => JSON.stringify(parts);
  for (let row = 0; row < (events?.t.length ?? 0); row++) {
    const {capture_id: id, role, event, lane, iteration, t} = events;
    const stamps = group('stamps', role[row], event[row]);
    stamps.n++;
    if (stamps.least === null || t[row] < stamps.least) stamps.least = t[row];
    if (stamps.most === null || t[row] > stamps.most) stamps.most = t[row];
    points.set(at(id[row], lane[row], event[row], iteration[row]), t[row]);
  }
  const begins = new Map();
  for (let row = 0; row < (types?.span.length ?? 0); row++) {
    const key = at(types.capture_id[row], types.role[row], types.begin_event[row]);
    begins.set(key, [...begins.get(key) ?? [], row]);
  }
  for (let row = 0; row < (events?.t.length ?? 0); row++) {
    const {capture_id: id, role, event, lane, iteration, t} = events;
    for (const type of begins.get(at(id[row], role[row], event[row])) ?? []) {
      const end = points.get(at(id[row], lane[row], types.end_event[type], iteration[row]));
      if (end === undefined) continue;
      const span = group('spans', role[row], types.span[type]);
      span.n++;
      span.sum += end - t[row];
    }
  }
  for (let row = 0; row < (lanes?.lane.length ?? 0); row++) {
    const role = group('lanes', lanes.role[row], '');
    role.n++;
    role.sum += lanes.records_kept[row];
  }
  const result = {stamps: [], spans: [], lanes: []};
  for (const {name, role, what, n, least, most, sum} of grouped.values()) {
    result[name].push(name === 'stamps' ? [role, what, n, `${least}`, `${most}`]
      : name === 'spans' ? [role, what, n, `${sum}`] : [role, n, `${sum}`]);
  }
  return result;
}

const request = JSON.parse(text(readFileSync(0)));
const read = await READERS[process.argv[2]]();
const result = {tables: {}, answers: {}};
const tables = {};
for (const [key, path] of Object.entries(request.files)) {
  try {
    const columns = tables[key] = await read(path);
    const kinds = request.kinds[key];
    result.tables[key] = Object.fromEntries(Object.entries(columns).map(([name, {kind, values}]) =>
      [name, {kind, ...digest(kinds[name], values)}]));
  } catch (error) {
    result.tables[key] = {error: error.message};
  }
}
for (const [bundle, keys] of Object.entries(request.ask)) {
  const held = Object.entries(keys).map(([name, key]) => [name, Object.fromEntries(
    Object.entries(tables[key]).map(([column, {values}]) => [column, values]))]);
  result.answers[bundle] = answers(Object.fromEntries(held));
}
console.log(JSON.stringify(result));
