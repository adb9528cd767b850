// Family 5, and the rules about sources and order: what refers to what. Chapters 4, 5, 6, 17.
import {compare, group, key, keyed, roleOf} from './rows.js';
import {SPEC} from './report.js';

const BY_TARGET = {captures: 'E502', launches: 'E503', lanes: 'E504', roles: 'E505', clocks: 'E601', spans: 'E508'};
const INTEGER_KEY = {launches: 'launch', lanes: 'lane', clocks: 'clock', spans: 'span_id', edges: 'edge_id'};
const REPEATED = ['launch', 'cta', 'sm', 'warp', 'role', 'clock'];

function duplicates(d, add) {
  for (const [name, {key: columns}] of Object.entries(SPEC.tables)) {
    // Two stamps of one key are E704 alone.
    if (!columns.length || name === 'events') continue;
    for (const rows of group(d[name], ...columns).values()) {
      if (rows.length > 1) add('E501', name, rows[1], `${rows.length} rows of one key`, columns.at(-1));
    }
  }
}

function references(d, tables, add) {
  const targets = new Map();
  const rowsOf = (table, column) => {
    const name = `${table}.${column}`;
    const columns = column === 'capture_id' ? [column] : ['capture_id', column];
    if (!targets.has(name)) targets.set(name, group(d[table], ...columns));
    return targets.get(name);
  };
  const known = rowsOf('captures', 'capture_id');
  for (const [name, {columns}] of Object.entries(SPEC.tables)) {
    for (const {name: column, points_to: to} of columns) {
      const code = to && BY_TARGET[to.table];
      if (!code || d[to.table].broken) continue;
      const defined = rowsOf(to.table, to.column);
      for (let row = 0; row < d[name].n; row++) {
        // A row of an undefined capture can point nowhere: that is E502 alone.
        if (column !== 'capture_id' && !known.has(key(d[name].capture_id[row]))) continue;
        const value = d[name][column][row];
        if (value === null || (to.nowhere !== null && Number(value) === to.nowhere) || value === to.nowhere) continue;
        const wanted = column === 'capture_id' ? key(value) : key(d[name].capture_id[row], value);
        if (!defined.has(wanted)) add(code, name, row, `${column} ${value} has no row in ${to.table}`, column);
      }
    }
  }
  // Tables of extensions refer by capture_id alone.
  for (const [name, table] of tables) {
    const ids = SPEC.tables[name] || d.captures.broken ? null : table.columns.get('capture_id')?.values;
    ids?.forEach((id, row) => {
      if (!rowsOf('captures', 'capture_id').has(key(id))) add('E502', name, row, `capture ${id}`, 'capture_id');
    });
  }
}

function pairs(d, add, name, types, column, code) {
  const captures = group(d.captures, 'capture_id'), lanes = group(d.lanes, 'capture_id', 'lane');
  const declared = group(d[types], 'capture_id', 'role', column);
  for (const [row, lane] of keyed(d[name], 'capture_id', 'lane')) {
    const {capture_id: id, [column]: kind} = d[name];
    if (!captures.has(key(id[row]))) continue;
    const role = roleOf(d, lanes, lane, d[name].role[row]);
    if (!declared.has(key(id[row], role, kind[row]))) {
      add(code, name, row, `(${role}, ${kind[row]}) has no row in ${types}`, column);
    }
  }
}

function repeats(d, add) {
  const lanes = group(d.lanes, 'capture_id', 'lane');
  for (const name of ['events', 'spans']) {
    for (const [row, lane] of keyed(d[name], 'capture_id', 'lane')) {
      const of = lanes.get(lane)?.[0];
      if (of === undefined) continue;
      for (const column of REPEATED) {
        const [here, there] = [d[name][column][row] ?? '', d.lanes[column][of] ?? ''];
        if (here !== there) add('E509', name, row, `${column} ${here}, its lane says ${there}`, column);
      }
    }
  }
}

/** Declared points: (capture, role, name) of every event, and of both ends of every span. */
function declaredPoints(d) {
  const points = new Set();
  const {event_types: e, span_types: s} = d;
  for (let row = 0; row < e.n; row++) points.add(key(e.capture_id[row], e.role[row], e.event[row]));
  for (let row = 0; row < s.n; row++) {
    for (const end of ['begin', 'end']) points.add(key(s.capture_id[row], s.role[row], `${s.span[row]}.${end}`));
  }
  return points;
}

function points(d, add) {
  const declared = declaredPoints(d), roles = group(d.roles, 'capture_id', 'role');
  const look = (code, name, role, column) => {
    for (let row = 0; row < d[name].n; row++) {
      const point = d[name][column][row] ?? '';
      // The points of a dependency on a role that is not there are E505 alone.
      if (code === 'E511' && !roles.has(key(d[name].capture_id[row], d[name][role][row]))) continue;
      if (point !== '' && !declared.has(key(d[name].capture_id[row], d[name][role][row], point))) {
        add(code, name, row, `${column} ${point} is not declared for ${d[name][role][row]}`, column);
      }
    }
  };
  look('E510', 'span_types', 'role', 'begin_event');
  look('E510', 'span_types', 'role', 'end_event');
  look('E511', 'dependencies', 'producer_role', 'producer_event');
  look('E511', 'dependencies', 'consumer_role', 'consumer_event');
  look('E512', 'roles', 'role', 'iteration_event');
}

function dense(d, add) {
  for (const rows of group(d.lanes, 'capture_id').values()) {
    const numbers = rows.map(row => d.lanes.lane[row]);
    const most = numbers.reduce((a, b) => Math.max(a, b), -1);
    const count = new Set(numbers).size;
    if (count !== most + 1) add('W513', 'lanes', rows[0], `${count} lanes, the highest is ${most}`, 'lane');
  }
}

/** The rows that an attribute can speak of, as (capture, row_key). */
function* integerKeys(view, name) {
  const column = INTEGER_KEY[name];
  for (let row = 0; row < view.n; row++) {
    if (column) yield key(view.capture_id[row], `${view[column][row]}`);
    else if (name === 'captures') yield key(view.capture_id[row], '');
  }
}

function attributes(d, add) {
  const {capture_id: id, table_name: table, row_key: text} = d.attributes;
  const known = new Map();
  for (let row = 0; row < d.attributes.n; row++) {
    const name = table[row];
    if (!SPEC.tables[name] || d[name].broken) continue;
    if (!known.has(name)) known.set(name, new Set(integerKeys(d[name], name)));
    const exists = known.get(name).has(key(id[row], text[row]));
    if (!exists) add('W514', 'attributes', row, `no row '${text[row]}' of ${name}`, 'row_key');
  }
}

function sources(d, manifest, add) {
  const captures = group(d.captures, 'capture_id');
  const named = new Set();
  for (const source of manifest.sources) {
    for (const id of source.capture_ids) {
      named.add(key(id));
      if (!captures.has(key(id))) add('E212', null, null, `${source.name} names capture ${id}`);
    }
  }
  for (const [id, [row]] of captures) {
    if (!named.has(id)) add('I211', 'captures', row, 'no source names this capture', 'capture_id');
  }
}

function order(d, add) {
  for (const [name, {sort}] of Object.entries(SPEC.tables)) {
    const columns = sort.map(column => d[name][column]);
    for (let row = 1; row < d[name].n; row++) {
      const differs = columns.find(values => values[row] !== values[row - 1]);
      if (differs && compare(differs[row - 1] ?? '', differs[row] ?? '') > 0) {
        add('W801', name, row, 'comes after a row that sorts later');
      }
    }
  }
}

export const RULES = [
  {codes: ['E501'], needs: [], run: duplicates},
  {codes: ['E502', 'E503', 'E504', 'E505', 'E508', 'E601'], needs: [], run: (d, add, {tables}) => references(d, tables, add)},
  {
    codes: ['E506'], needs: ['captures', 'lanes', 'events', 'event_types'],
    run: (d, add) => pairs(d, add, 'events', 'event_types', 'event', 'E506'),
  },
  {
    codes: ['E507'], needs: ['captures', 'lanes', 'spans', 'span_types'],
    run: (d, add) => pairs(d, add, 'spans', 'span_types', 'span', 'E507'),
  },
  {codes: ['E509'], needs: ['lanes'], run: repeats},
  {codes: ['E510', 'E511', 'E512'], needs: ['roles', 'event_types', 'span_types'], run: points},
  {codes: ['W513'], needs: ['lanes'], run: dense},
  {codes: ['W514'], needs: ['attributes'], run: attributes},
  {codes: ['E212', 'I211'], needs: ['captures'], run: (d, add, {manifest}) => sources(d, manifest, add)},
  {codes: ['W801'], needs: [], run: order},
];
