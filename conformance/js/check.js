#!/usr/bin/env node
// Checks wsformat bundles: `node check.js BUNDLE...`, one line of JSON for each.
// Exit 0: nothing of level E; 1: something of level E; 2: a bundle is not there, or the call is wrong.
import {existsSync} from 'node:fs';
import {parseArgs} from 'node:util';
import {checkExtensions, checkFiles, checkManifest, readManifest} from './container.js';
import {checkDigests, checkWidened, openTable, readValues} from './table.js';
import {checkValues} from './values.js';
import {checkMeaning} from './meaning.js';
import {NOT_IMPLEMENTED, Report, SPEC} from './report.js';

const READING = ['E101', 'E201', 'E202', 'E203'];
const USAGE = 'use: check.js [--metadata] BUNDLE..., or check.js --codes';

/** Report of one bundle; in metadata mode no rows are read. */
export async function check(root, {metadata = false} = {}) {
  const report = new Report();
  const manifest = readManifest(root, report);
  if (manifest === undefined || !checkManifest(manifest, report)) {
    const checked = manifest === undefined ? READING : [...READING, 'E204', 'E205', 'E206'];
    report.skip(Object.keys(SPEC.rules).filter(code => !checked.includes(code)), 'nothing can be made of the manifest');
    return report;
  }
  const bytes = checkFiles(root, manifest, report, !metadata);
  const tables = new Map();
  for (const [name, content] of bytes) {
    const table = openTable(name, content, manifest, report);
    if (table) tables.set(name, table);
  }
  checkExtensions(manifest, tables, report);
  if (metadata) {
    for (const table of tables.values()) checkWidened(table, report);
    report.skip(Object.keys(SPEC.rules).filter(code => SPEC.rules[code].reads === 'data'), 'rows were not read');
    return report;
  }
  for (const [name, table] of tables) {
    if (await readValues(table, report)) {
      checkDigests(table, manifest.tables[name], report);
      checkValues(table, manifest, report);
    }
    checkWidened(table, report);
  }
  checkMeaning(manifest, tables, report);
  return report;
}

async function main() {
  let options;
  try {
    options = parseArgs({options: {codes: {type: 'boolean'}, metadata: {type: 'boolean'}}, allowPositionals: true});
  } catch (error) {
    console.error(`${error.message}\n${USAGE}`);
    return 2;
  }
  const {values, positionals} = options;
  if (values.codes) {
    const implemented = Object.keys(SPEC.rules).filter(code => !NOT_IMPLEMENTED.includes(code));
    console.log(JSON.stringify({format_version: SPEC.format_version, implemented, not_implemented: NOT_IMPLEMENTED}));
    return 0;
  }
  if (!positionals.length) {
    console.error(USAGE);
    return 2;
  }
  let exit = 0;
  for (const path of positionals) {
    if (!existsSync(path)) {
      console.error(`${path}: no such file or directory`);
      exit = 2;
      continue;
    }
    let result;
    try {
      result = (await check(path, values)).json(path);
    } catch (error) {
      console.error(`${path}: ${error.message}`);
      exit = 2;
      continue;
    }
    console.log(JSON.stringify(result, (key, value) => typeof value === 'bigint' ? value.toString() : value));
    if (!result.ok) exit = Math.max(exit, 1);
  }
  return exit;
}

if (import.meta.main ?? process.argv[1]?.endsWith('check.js')) process.exitCode = await main();
