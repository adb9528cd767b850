// A strict JSON reader (RFC 8259) that says what JSON.parse hides: keys that occur twice, integers beyond 64 bits,
// nesting. Integers beyond 2^53 become BigInt.

export const DEEPEST = 64;
const LEAST = -(2n ** 63n), MOST = 2n ** 63n - 1n;

export class JsonError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** The value of a JSON text, and the paths of keys that occur twice. Throws JsonError with E201 or E203. */
export function parse(text) {
  let at = 0;
  const twice = [];
  const invalid = what => new JsonError('E201', `${what} at character ${at}`);
  const space = () => { while (' \t\n\r'.includes(text[at] || 'x')) at++; };

  function string() {
    let end = at + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
    try {
      // JSON.parse decodes one text exactly, and refuses control characters and unknown escapes.
      const result = JSON.parse(text.slice(at, end + 1));
      at = end + 1;
      return result;
    } catch {
      throw invalid('a text that is not closed or has a forbidden character');
    }
  }

  function number() {
    const found = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
    found.lastIndex = at;
    const match = found.exec(text);
    if (!match) throw invalid('something that is no JSON value');
    at = found.lastIndex;
    if (match[1] || match[2]) return Number(match[0]);
    // No 64-bit integer has more than 19 digits; BigInt of a million of them would take seconds.
    if (match[0].length > 20) throw new JsonError('E203', `an integer of ${match[0].length} characters`);
    const value = BigInt(match[0]);
    if (value < LEAST || value > MOST) throw new JsonError('E203', `the integer ${value} does not fit 64 bits`);
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }

  function value(path, depth) {
    space();
    const word = /true|false|null/y;
    word.lastIndex = at;
    const literal = word.exec(text);
    if (literal) {
      at = word.lastIndex;
      return {true: true, false: false, null: null}[literal[0]];
    }
    if (text[at] === '"') return string();
    if (text[at] !== '{' && text[at] !== '[') return number();
    if (depth > DEEPEST) throw new JsonError('E203', `nested deeper than ${DEEPEST}`);
    return text[at] === '{' ? object(path, depth) : array(path, depth);
  }

  function list(close, item) {
    at++;
    space();
    if (text[at] === close) { at++; return; }
    for (;;) {
      item();
      space();
      if (text[at] === close) { at++; return; }
      if (text[at] !== ',') throw invalid(`a comma or ${close} is missing`);
      at++;
    }
  }

  function object(path, depth) {
    const result = new Map();
    list('}', () => {
      space();
      if (text[at] !== '"') throw invalid('a key is missing');
      const key = string();
      space();
      if (text[at] !== ':') throw invalid('a colon is missing');
      at++;
      if (result.has(key)) twice.push(`${path}.${key}`);
      result.set(key, value(`${path}.${key}`, depth + 1));
    });
    return Object.fromEntries(result);
  }

  function array(path, depth) {
    const result = [];
    list(']', () => result.push(value(`${path}[${result.length}]`, depth + 1)));
    return result;
  }

  const result = value('$', 1);
  space();
  if (at < text.length) throw invalid('something after the end');
  return {value: result, twice};
}

export const isJson = text => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
