// Reads what a checker needs out of the text of the standard: `node spec_data.js spec.md SCHEMA > spec.json`.
// Nothing else is a source of this checker's tables, so a fact that spec.md does not state cannot be checked.
import {readFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';

const code = text => text.replaceAll('`', '').trim();
// A cell holds '\|' for a bar; the standard has none so far, and a new one must not shift columns unseen.
const cells = line => line.slice(1, -1).split(/(?<!\\)\|/).map(cell => cell.trim());

/** The generated block NAME of the text, without its markers. */
function block(text, name) {
  const found = text.match(new RegExp(`<!-- generated: ${name} -->\\n([\\s\\S]*?)<!-- end generated -->`));
  if (!found) throw new Error(`spec.md has no block "${name}"`);
  return found[1];
}

/** Rows of the first Markdown table of a block. */
function rows(text) {
  const lines = text.split('\n').filter(line => line.startsWith('|'));
  return lines.slice(2).map(cells);
}

/** Target of "Points to `table.column`, or `-1`." in the meaning of a column. */
function reference(meaning) {
  const found = meaning.match(/Points to `(\w+)\.(\w+)`(?:, or `(.*?)`)?\./);
  if (!found) return null;
  const nowhere = found[3] === undefined ? null : found[3] === "''" ? '' : Number(found[3]);
  return {table: found[1], column: found[2], nowhere};
}

function table(text, name) {
  const part = block(text, `table ${name}`);
  const names = label => {
    const line = part.match(new RegExp(`${label}: (.*?)\\.(?: |\\n)`))[1];
    return line === 'none' ? [] : line.split(', ').map(code);
  };
  const columns = rows(part).map(([column, type, nullable, , since, meaning]) => ({
    name: code(column), type, nullable: nullable === 'yes', since, points_to: reference(meaning),
    vocabulary: meaning.match(/\(#vocabulary-(\w+)\)/)?.[1] ?? null,
  }));
  return {name, key: names('Key'), sort: names('Sort order'), columns};
}

function vocabularies(text) {
  const result = {};
  for (const part of block(text, 'vocabularies').split('#### Vocabulary ').slice(1)) {
    const name = part.match(/^\w+/)[0];
    result[name] = {closed: /\nClosed\./.test(part), values: rows(part).map(([value]) => code(value).replace("''", ''))};
  }
  return result;
}

function bounds(text) {
  const part = block(text, 'bounds');
  const number = cell => cell === 'none' ? null : Number(cell);
  return {
    ranges: Object.fromEntries(rows(part).map(([column, least, most]) => [code(column), [number(least), number(most)]])),
    never_empty: part.match(/Never empty: (.*)\./)[1].split(', ').map(code),
  };
}

/** Highest core clock in Hz, by name of the device and by arch. */
function highestClocks(text) {
  const result = {device: {}, arch: {}};
  for (const [of, name, hz] of rows(block(text, 'clocks'))) result[of][code(name)] = Number(hz);
  return result;
}

export function read(text, schema) {
  const since = Object.fromEntries(rows(block(text, 'tables')).map(cell => [code(cell[0]), cell[3]]));
  return {
    format_version: text.match(/^# wsformat (\d+\.\d+)/)[1],
    tables: Object.fromEntries(Object.keys(since).map(name => [name, {since: since[name], ...table(text, name)}])),
    ...bounds(text),
    vocabularies: vocabularies(text),
    highest_clock: highestClocks(text),
    rules: Object.fromEntries(rows(block(text, 'rules')).map(([rule, word, reads, holds]) =>
      [code(rule), {word, reads, holds}])),
    delta_columns: rows(block(text, 'layout')).find(([property]) => property.includes('DELTA_BINARY_PACKED'))[1]
      .split(', ').map(code),
    // Chapter 4 makes this file part of the standard.
    manifest_schema: JSON.parse(schema),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [spec, schema] = process.argv.slice(2).map(path => readFileSync(path, 'utf8'));
  console.log(JSON.stringify(read(spec, schema), null, 1));
}
