import {readFileSync} from 'node:fs';

// Without a prototype, a table named `constructor` is not found where there is none.
const plain = (key, value) => value && typeof value === 'object' && !Array.isArray(value)
  ? Object.assign(Object.create(null), value) : value;

export const SPEC = JSON.parse(readFileSync(new URL('spec.json', import.meta.url), 'utf8'), plain);

/** Rules of the standard that this checker does not implement. */
export const NOT_IMPLEMENTED = [];

/** What was found: each code with the number of offences and the first place, and what could not be checked. */
export class Report {
  problems = new Map();
  notChecked = new Map();

  add(code, message, {table, row, column, count = 1} = {}) {
    if (!SPEC.rules[code]) throw new Error(`no rule ${code} in the standard`);
    const known = this.problems.get(code);
    if (known) known.count += count;
    else this.problems.set(code, {code, word: SPEC.rules[code].word, count, table, row, column, message});
  }

  skip(codes, why) {
    for (const code of codes) if (!this.notChecked.has(code)) this.notChecked.set(code, why);
  }

  has(code) {
    return this.problems.has(code);
  }

  json(bundle) {
    const problems = [...this.problems.values()].sort((a, b) => a.code < b.code ? -1 : 1);
    const codes = problems.map(problem => problem.code);
    const notChecked = [...this.notChecked].filter(([code]) => !this.has(code)).sort()
      .map(([code, why]) => ({code, why}));
    return {bundle, ok: !codes.some(code => code.startsWith('E')), codes, problems, not_checked: notChecked};
  }
}
