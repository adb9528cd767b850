// Families 1 and 2: the directory, the manifest, and what the manifest says of files. Chapters 3, 4, 19, 20.
import {lstatSync, readFileSync, readdirSync} from 'node:fs';
import {basename, join, resolve} from 'node:path';
import {createHash} from 'node:crypto';
import {JsonError, parse} from './json.js';
import {violations} from './json_schema.js';
import {SPEC} from './report.js';

const LARGEST = 16_777_216;
const [MAJOR, MINOR] = SPEC.format_version.split('.').map(Number);
const VERSION = /^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$/;
const minor = version => Number(version.split('.')[1]);

const stat = path => {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
};

/** The manifest as a value, undefined when nothing can be made of it. */
export function readManifest(root, report) {
  const path = join(root, 'manifest.json');
  const found = stat(root)?.isDirectory() ? stat(path) : null;
  if (found?.isSymbolicLink()) report.add('E112', 'manifest.json is a link');
  else if (!found?.isFile()) report.add('E101', `${root} is not a directory with a regular file manifest.json`);
  else if (found.size > LARGEST) report.add('E203', `manifest.json has ${found.size} bytes, ${LARGEST} are allowed`);
  if (report.problems.size) return undefined;
  try {
    const text = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(readFileSync(path));
    const {value, twice} = parse(text);
    for (const key of twice) report.add('E202', `the key ${key} occurs twice`);
    return twice.length ? undefined : value;
  } catch (error) {
    const code = error instanceof JsonError ? error.code : 'E201';
    report.add(code, `manifest.json: ${error.message}`);
    return undefined;
  }
}

/** Code of a text in the manifest that has not its form: a rule of its own where there is one, and then that alone. */
function codeOfForm([first, , third], {version}) {
  if (first === 'version') return VERSION.test(version) ? 'E206' : 'E205';
  return {'tables.file': 'E208', 'extensions.name': 'E903', 'extensions.columns': 'E307',
    'sources.capture_ids': 'E406'}[`${first}.${third}`] ?? 'E204';
}

/** Checks the manifest by itself; true when tables can be looked at. */
export function checkManifest(manifest, report) {
  for (const {path, keyword, message} of violations(SPEC.manifest_schema, manifest)) {
    const where = path.join('.');
    const code = keyword === 'pattern' ? codeOfForm(path, manifest) : 'E204';
    report.add(code, `${where || 'the manifest'} ${message}`);
  }
  if (['E204', 'E205', 'E206'].some(code => report.has(code))) return false;
  const newer = minor(manifest.version) > MINOR;
  if (newer) report.add('W207', `version ${manifest.version}, this checker knows ${MAJOR}.${MINOR}`);
  for (const key of Object.keys(manifest)) {
    if (key in SPEC.manifest_schema.properties || key.includes('__')) continue;
    if (newer) report.skip(['W213'], 'the bundle is of a newer minor version');
    else report.add('W213', `the key ${key} is not of the standard`);
  }
  for (const name of Object.keys(manifest.tables)) {
    if (name.includes('__')) continue;
    const since = SPEC.tables[name]?.since;
    if (since === undefined && newer) report.skip(['E210'], 'the bundle is of a newer minor version');
    else if (since === undefined) report.add('E210', `the standard has no table ${name}`, {table: name});
    else if (minor(since) > minor(manifest.version)) {
      report.add('E214', `table ${name} came with ${since}, the bundle is of ${manifest.version}`, {table: name});
    }
  }
  if (!Object.hasOwn(manifest.tables, 'captures')) report.add('E209', 'the bundle has no table captures');
  return true;
}

/** Checks the directory; bytes of each table file that may be read, by table name. */
export function checkFiles(root, manifest, report, dataMode) {
  const name = basename(resolve(root));
  if (!/.\.wsformat$/.test(name)) report.add('I113', `the directory is called ${name}`);
  const listed = new Map();
  const bytes = new Map();
  for (const [table, entry] of Object.entries(manifest.tables)) {
    const place = {table};
    if (!new RegExp(SPEC.manifest_schema.$defs.table.properties.file.pattern, 'u').test(entry.file)) continue;
    if (listed.has(entry.file)) {
      report.add('E111', `${entry.file} is the file of ${listed.get(entry.file)} too`, place);
      continue;
    }
    listed.set(entry.file, table);
    if (entry.file !== `${table}.parquet`) report.add('W114', `the file of ${table} is called ${entry.file}`, place);
    const path = join(root, entry.file);
    const found = stat(path);
    if (found?.isSymbolicLink()) report.add('E112', `${entry.file} is a link`, place);
    else if (!found?.isFile()) report.add('E102', `${entry.file} is not there`, place);
    else {
      const content = readFileSync(path);
      bytes.set(table, content);
      if (BigInt(content.length) !== BigInt(entry.bytes)) {
        report.add('E104', `${entry.file} has ${content.length} bytes, the manifest says ${entry.bytes}`, place);
        continue;
      }
      const sha256 = dataMode ? createHash('sha256').update(content).digest('hex') : entry.sha256;
      if (sha256 !== entry.sha256) report.add('E105', `${entry.file} has sha256 ${sha256}`, place);
    }
  }
  for (const entry of readdirSync(root, {withFileTypes: true})) {
    if (entry.name === 'manifest.json' || listed.has(entry.name)) continue;
    if (entry.name.endsWith('.parquet') && !entry.isDirectory()) report.add('E109', `${entry.name} is not listed`);
    else report.add('W110', `${entry.name} is neither the manifest nor a table`);
  }
  return bytes;
}

/** Chapter 20; tables are those that could be opened. */
export function checkExtensions(manifest, tables, report) {
  const declaredTables = new Set(), declaredColumns = new Set(), names = new Set();
  const has = name => Object.hasOwn(manifest.tables, name);
  for (const extension of manifest.extensions) {
    const {name} = extension;
    if (names.has(name)) report.add('E906', `the extension ${name} is listed twice`);
    names.add(name);
    if (extension.must_understand) report.add('E902', `the extension ${name} has to be understood and is not known`);
    const prefix = `${name.split('.')[0]}__`;
    for (const table of extension.tables ?? []) {
      declaredTables.add(table);
      if (!SPEC.tables[table] && !table.startsWith(prefix)) report.add('E903', `${table} in the extension ${name}`);
      if (!has(table)) report.add('W904', `${name} declares the table ${table}, which is not there`);
    }
    for (const qualified of extension.columns ?? []) {
      declaredColumns.add(qualified);
      const [table, column] = qualified.split('.');
      const ofOwnTable = table.startsWith(prefix);
      if (!ofOwnTable && !column.startsWith(prefix)) report.add('E903', `${qualified} in the extension ${name}`);
      if (!has(table) || (tables.has(table) && !tables.get(table).columns.has(column))) {
        report.add('W904', `${name} declares the column ${qualified}, which is not there`);
      }
    }
  }
  for (const [name, table] of tables) {
    if (!SPEC.tables[name]) {
      if (name.includes('__') && !declaredTables.has(name)) {
        report.add('W901', `no extension declares ${name}`, {table: name});
      }
      if (name.includes('__') && !table.columns.has('capture_id')) {
        report.add('E905', `${name} has no column capture_id`, {table: name});
      }
      continue;
    }
    for (const column of table.columns.keys()) {
      // A name that is malformed cannot be declared: that is E307 alone.
      if (/^[a-z][a-z0-9_]*$/.test(column) && column.includes('__') && !declaredColumns.has(`${name}.${column}`)) {
        report.add('W901', `no extension declares ${name}.${column}`, {table: name, column});
      }
    }
  }
}

export {MINOR, minor};
