// Family 4 and E303, E310: values of one column. Chapter 5, annex A.
import {isJson} from './json.js';
import {MINOR, minor} from './container.js';
import {SPEC} from './report.js';

const MOST_32 = 2n ** 31n - 1n, LEAST_32 = -(2n ** 31n);
const FORMS = {
  int: text => /^-?[0-9]+$/.test(text),
  float: text => /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text),
  bool: text => text === 'true' || text === 'false',
  json: isJson,
};

/** Converts columns that are stored wider or narrower to the type of the standard, in place. */
function convert(table, column, report) {
  const {rule, type, values} = column;
  if (!rule || type === rule.type) return;
  if (rule.type === 'INT32') {
    const outside = values.findIndex(value => value !== null && (value > MOST_32 || value < LEAST_32));
    if (outside >= 0) {
      report.add('E310', `${values[outside]} does not fit INT32`, {table: table.name, column: column.name, row: outside});
      table.sound = false;
      column.outside = true;
    }
    column.values = values.map(value => value === null ? null : Number(value));
  }
  if (rule.type === 'INT64') column.values = values.map(value => value === null ? null : BigInt(value));
  column.type = rule.type;
}

function forbidsNull(column) {
  return ['INT32', 'INT64', 'BOOLEAN'].includes(column.type) || (column.rule && !column.rule.nullable);
}

/** Checks every column of a table that was read. */
export function checkValues(table, manifest, report) {
  const standard = SPEC.tables[table.name];
  for (const column of table.columns.values()) {
    if (!column.values) continue;
    const say = (code, row, message) => report.add(code, message, {table: table.name, column: column.name, row});
    convert(table, column, report);
    const {values, type, rule} = column;
    const each = (code, wrong, message) => values.forEach((value, row) => {
      if (value !== null && wrong(value)) say(code, row, message(value));
    });
    if (forbidsNull(column)) {
      values.forEach((value, row) => {
        if (value !== null) return;
        say('E303', row, 'null');
        table.sound = false;
      });
    }
    if (type === 'DOUBLE' || type === 'FLOAT') each('E409', value => !Number.isFinite(value), value => `${value}`);
    // In other tables a malformed id is one that captures does not have: E502.
    if (column.name === 'capture_id' && table.name === 'captures') each('E406', value => !/^[0-9a-f]{26}$/.test(value), value => `'${value}'`);
    if (!rule) continue;
    const qualified = `${table.name}.${column.name}`;
    const [least, most] = SPEC.ranges[qualified] ?? (type.startsWith('INT') ? [-1, null] : [null, null]);
    const code = type === 'DOUBLE' ? 'E405' : 'E404';
    if (least !== null) each(code, value => value < least, value => `${value} is below ${least}`);
    if (most !== null) each('E405', value => value > most && value !== Infinity, value => `${value} is above ${most}`);
    if (SPEC.never_empty.includes(qualified)) each('E407', value => value === '', () => 'empty');
    if (rule.vocabulary) checkVocabulary(rule.vocabulary, manifest, each, report);
    if (column.name === 'colour') each('W408', value => !/^(#[0-9a-fA-F]{6})?$/.test(value), value => `'${value}'`);
    if (qualified === 'captures.arch') each('W413', value => !/^[a-z0-9_]*$/.test(value), value => `'${value}'`);
    if (qualified === 'findings.evidence') each('E412', value => value !== '' && !isJson(value), value => `'${value}'`);
  }
  if (standard && table.name === 'attributes') checkAttributes(table, report);
}

function checkVocabulary(name, manifest, each, report) {
  const {closed, values} = SPEC.vocabularies[name];
  const known = new Set(values);
  const code = closed ? 'E401' : 'W402';
  if (minor(manifest.version) > MINOR) {
    // A newer minor version may have new words, closed vocabularies included.
    report.skip([code], 'the bundle is of a newer minor version');
    return;
  }
  each(code, value => !known.has(value) && (closed || !value.includes('__')), value => `'${value}'`);
}

function checkAttributes(table, report) {
  const [types, values] = ['type', 'value'].map(name => table.columns.get(name)?.values);
  if (!types || !values) return;
  types.forEach((type, row) => {
    const form = FORMS[type];
    if (form && !form(values[row] ?? '')) {
      report.add('E411', `'${values[row]}' is no ${type}`, {table: table.name, column: 'value', row});
    }
  });
}

export {FORMS};
