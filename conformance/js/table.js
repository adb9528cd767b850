// Families 3 (schema) and 8: one Parquet file, its columns and how it is laid out. Chapters 5, 17, 18.
import {parquetMetadata, parquetRead} from 'hyparquet';
import {deserializeTCompactProtocol} from 'hyparquet/src/thrift.js';
import {compressors} from 'hyparquet-compressors';
import {MINOR, minor} from './container.js';
import {SPEC} from './report.js';

const INTEGERS = {INT32: 'INT32', INT64: 'INT64'};
const SIGNED = {INT32: 'INT_32', INT64: 'INT_64'};
const CONVERTIBLE = new Set(['INT32<INT64', 'INT64<INT32', 'DOUBLE<FLOAT']);
const GROUP = 131_072;
// Numbers of Parquet's own enumerations PageType and Encoding.
const DATA_PAGE_V2 = 3, DELTA = 5;

/** One of the five types, FLOAT, or null where the file's type is none that may be converted. */
function plainType({type, num_children, repetition_type, converted_type, logical_type}) {
  if (num_children || repetition_type === 'REPEATED') return null;
  const unsaid = converted_type === undefined && logical_type === undefined;
  if (INTEGERS[type]) {
    const {bitWidth, isSigned} = logical_type?.type === 'INTEGER' ? logical_type : {};
    const said = logical_type === undefined || (isSigned && `INT${bitWidth}` === type);
    return unsaid || (said && [undefined, SIGNED[type]].includes(converted_type)) ? type : null;
  }
  if (type === 'BYTE_ARRAY') {
    const said = logical_type === undefined ? converted_type === 'UTF8' : logical_type.type === 'STRING';
    return said ? 'STRING' : null;
  }
  return ['DOUBLE', 'FLOAT', 'BOOLEAN'].includes(type) && unsaid ? type : null;
}

function openFile(bytes) {
  const metadata = parquetMetadata(new Uint8Array(bytes), {geoparquet: false});
  const chunks = metadata.row_groups.flatMap(group => group.columns);
  if (chunks.some(chunk => chunk.crypto_metadata || chunk.encrypted_column_metadata || !chunk.meta_data)) {
    throw new Error('a column is encrypted');
  }
  if (!bytes.subarray(0, 4).equals(Buffer.from('PAR1'))) throw new Error('it does not begin with PAR1');
  const ends = chunks.map(({meta_data: m}) =>
    Number(m.dictionary_page_offset ?? m.data_page_offset) + Number(m.total_compressed_size));
  if (ends.some(end => end > bytes.length)) throw new Error('a column ends after the file');
  return metadata;
}

/** The table with its columns by name, or null when the file is no Parquet. Values are read by `readValues`. */
export function openTable(name, bytes, manifest, report) {
  const entry = manifest.tables[name];
  let metadata;
  try {
    metadata = openFile(bytes);
  } catch (error) {
    report.add('E103', `${entry.file}: ${error.message}`, {table: name});
    return null;
  }
  const rows = Number(metadata.num_rows);
  if (BigInt(rows) !== BigInt(entry.rows)) {
    report.add('E106', `${entry.file} has ${rows} rows, the manifest says ${entry.rows}`, {table: name});
  }
  if (name === 'captures' && rows === 0) report.add('E209', 'captures has no row', {table: name});
  const table = {name, rows, bytes, metadata, columns: new Map(), sound: true};
  const top = topLevel(metadata.schema);
  for (const element of top) {
    if (table.columns.has(element.name)) {
      report.add('E309', `two columns ${element.name}`, {table: name, column: element.name});
      table.columns.get(element.name).twice = true;
      continue;
    }
    table.columns.set(element.name, {name: element.name, element, type: plainType(element), values: null});
  }
  checkColumns(table, manifest, report);
  checkDigestNames(table, entry, report);
  try {
    checkLayout(table, report);
  } catch (error) {
    report.add('E103', `a page header cannot be read: ${error.message}`, {table: name});
    table.sound = false;
  }
  return table;
}

function topLevel(schema) {
  const result = [];
  const end = at => {
    let next = at + 1;
    for (let i = 0; i < (schema[at].num_children ?? 0); i++) next = end(next);
    return next;
  };
  for (let at = 1; at < schema.length; at = end(at)) result.push(schema[at]);
  return result;
}

function checkColumns(table, manifest, report) {
  const standard = SPEC.tables[table.name];
  const version = manifest.version;
  const wanted = new Map((standard?.columns ?? []).map(column => [column.name, column]));
  for (const column of table.columns.values()) {
    const place = {table: table.name, column: column.name};
    const rule = column.rule = wanted.get(column.name) ?? null;
    if (!/^[a-z][a-z0-9_]*$/.test(column.name)) report.add('E307', `the name ${column.name}`, place);
    if (column.type === null) report.add('E302', `${describe(column.element)} is not one of the five types`, place);
    else if (rule && column.type !== rule.type) {
      const close = CONVERTIBLE.has(`${rule.type}<${column.type}`);
      column.widened = close;
      if (!close) {
        report.add('E305', `is ${column.type}, ${rule.type} is needed`, place);
        column.type = null;
      }
    } else column.widened = !rule && column.type === 'FLOAT';
    if (column.twice) column.type = null;
    if (rule && minor(rule.since) > minor(version) && minor(standard.since) <= minor(version)) {
      report.add('E214', `${column.name} came with ${rule.since}`, place);
    }
    if (!rule && standard && !column.name.includes('__')) {
      if (minor(version) > MINOR) report.skip(['E308'], 'the bundle is of a newer minor version');
      else report.add('E308', `the standard has no column ${column.name}`, place);
    }
  }
  for (const {name, since} of wanted.values()) {
    if (table.columns.has(name)) {
      if (table.columns.get(name).type === null) table.sound = false;
    } else if (minor(since) <= minor(version)) {
      report.add('E301', `has no column ${name}`, {table: table.name, column: name});
      table.sound = false;
    }
  }
  const own = [...wanted.keys()].filter(name => table.columns.has(name));
  const first = [...table.columns.keys()].slice(0, own.length);
  if (own.join() !== first.join()) report.add('W306', `columns begin with ${first.join(', ')}`, {table: table.name});
}

const describe = ({type, num_children, converted_type, logical_type}) =>
  num_children ? 'a nested type' : [type, converted_type, logical_type?.type].filter(Boolean).join(' ');

const hasDigest = column => column.type !== null && ['INT32', 'INT64', 'BOOLEAN'].includes(column.type);

function checkDigestNames(table, entry, report) {
  for (const column of table.columns.values()) {
    // The type that counts is the one in the file, also where the standard wants another.
    const counts = ['INT32', 'INT64', 'BOOLEAN'].includes(plainType(column.element));
    if (counts !== Object.hasOwn(entry.columns, column.name)) {
      const place = {table: table.name, column: column.name};
      report.add('E108', counts ? `no digest of ${column.name}` : `a digest of ${column.name}`, place);
    }
  }
  for (const name of Object.keys(entry.columns)) {
    if (!table.columns.has(name)) report.add('E108', `a digest of ${name}, which is not there`, {table: table.name});
  }
}

function checkLayout(table, report) {
  const {metadata, rows, name} = table;
  const say = (code, message, column) => report.add(code, message, {table: name, column});
  const sizes = metadata.row_groups.map(group => Number(group.num_rows));
  if (sizes.some(size => size > 2 * GROUP) || (sizes.length > 1 && rows / sizes.length < GROUP / 2)) {
    say('W802', `${sizes.length} row groups of up to ${Math.max(...sizes)} rows`);
  }
  if (metadata.key_value_metadata?.some(({key}) => key === 'ARROW:schema')) say('W804', 'the footer has ARROW:schema');
  for (const {name: column, element} of table.columns.values()) {
    if (element.field_id !== undefined) say('W809', `field id ${element.field_id}`, column);
  }
  const once = new Set();
  const sayOnce = (code, message, column) => {
    if (!once.has(code + column)) say(code, message, column);
    once.add(code + column);
  };
  for (const chunk of metadata.row_groups.flatMap(group => group.columns)) {
    const {path_in_schema: [column], codec, encodings, type, ...meta} = chunk.meta_data;
    const delta = encodings.includes('DELTA_BINARY_PACKED');
    if (codec !== 'ZSTD') sayOnce('W806', `compressed with ${codec}`, column);
    if (meta.bloom_filter_offset !== undefined) sayOnce('W805', 'a bloom filter', column);
    if (chunk.column_index_offset !== undefined && rows <= GROUP) sayOnce('W808', `page index for ${rows} rows`, column);
    if (SPEC.delta_columns.includes(column) && SPEC.tables[name] && (!delta || meta.dictionary_page_offset)) {
      sayOnce('W807', `encoded as ${encodings.join(', ')}`, column);
    }
    if (type === 'INT64' && delta && deltaInV2(table.bytes, meta)) {
      sayOnce('E803', 'DELTA_BINARY_PACKED in data pages of version 2', column);
    }
  }
}

/** Whether a chunk has a delta page of version 2, by its page headers: `encoding_stats` of a footer calls both the same. */
function deltaInV2(bytes, meta) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = Number(meta.dictionary_page_offset ?? meta.data_page_offset);
  const end = start + Number(meta.total_compressed_size);
  for (const reader = {view, offset: start}; reader.offset < end;) {
    const {field_1: type, field_3: size, field_8: v2} = deserializeTCompactProtocol(reader);
    if (type === DATA_PAGE_V2 && v2?.field_4 === DELTA) return true;
    if (!(size >= 0)) return false;
    reader.offset += size;
  }
  return false;
}

/** W304, said where the values are not wrong as well: a widened column whose values do not fit is E310 alone. */
export function checkWidened(table, report) {
  for (const {name, element, rule, widened, outside} of table.columns.values()) {
    if (!widened || outside) continue;
    const place = {table: table.name, column: name};
    report.add('W304', `is stored as ${element.type}, ${rule?.type ?? 'DOUBLE'} is needed`, place);
  }
}

/** Reads every column of the five types; false when a page cannot be decoded. */
export async function readValues(table, report) {
  const columns = [...table.columns.values()].filter(column => column.type !== null);
  const chunks = new Map(columns.map(column => [column.name, []]));
  const utf8 = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true});
  const {buffer, byteOffset, byteLength} = table.bytes;
  try {
    await parquetRead({
      file: buffer.slice(byteOffset, byteOffset + byteLength), metadata: table.metadata, compressors,
      columns: columns.map(column => column.name), geoparquet: false,
      parsers: {stringFromBytes: bytes => bytes && utf8.decode(bytes)},
      onChunk: chunk => chunks.get(chunk.columnName).push(chunk),
    });
  } catch (error) {
    report.add('E103', `a page cannot be decoded: ${error.message}`, {table: table.name});
    table.sound = false;
    return false;
  }
  for (const column of columns) {
    const parts = chunks.get(column.name).sort((a, b) => a.rowStart - b.rowStart);
    column.values = new Array(table.rows);
    for (const {rowStart, columnData} of parts) {
      for (let i = 0; i < columnData.length; i++) column.values[rowStart + i] = columnData[i] ?? null;
    }
  }
  return true;
}

/** Count, sum and xor of chapter 18 over the values that are not null. */
export function digest(values) {
  let count = 0, sum = 0n, xor = 0n;
  for (const value of values) {
    if (value === null) continue;
    const v = BigInt(value);
    count++;
    sum += v;
    xor ^= v;
  }
  const hex = v => BigInt.asUintN(64, v).toString(16).padStart(16, '0');
  return {count, sum: hex(sum), xor: hex(xor)};
}

export function checkDigests(table, entry, report) {
  for (const column of table.columns.values()) {
    const said = entry.columns[column.name];
    if (!column.values || !hasDigest(column) || !said) continue;
    const got = digest(column.values);
    if (got.count !== Number(said.count) || got.sum !== said.sum || got.xor !== said.xor) {
      report.add('E107', `digest ${JSON.stringify(got)}`, {table: table.name, column: column.name});
    }
  }
}
