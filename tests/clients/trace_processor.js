// Drives the upstream Perfetto trace_processor (WASM, memory32) inside Node 20 or newer.
// TP_WASM_DIR is the folder of the engine, unpacked by install.sh.
'use strict';
const fs = require("fs"), path = require("path"), vm = require("vm");
const DIR = process.env.TP_WASM_DIR || path.join(__dirname, 'assets');

// --- tiny protobuf helpers -------------------------------------------------
function varint(n) { let b = []; n = BigInt(n); while (n > 127n) { b.push(Number(n & 127n) | 128); n >>= 7n; } b.push(Number(n)); return Buffer.from(b); }
const fVar = (f, v) => Buffer.concat([varint(f << 3), varint(v)]);
const fLen = (f, b) => { b = Buffer.isBuffer(b) ? b : Buffer.from(b); return Buffer.concat([varint((f << 3) | 2), varint(b.length), b]); };
function* fields(buf) {
  let p = 0;
  const rv = () => { let r = 0n, s = 0n; for (;;) { const c = buf[p++]; r |= BigInt(c & 127) << s; if (c < 128) return r; s += 7n; } };
  while (p < buf.length) {
    const t = Number(rv()), f = t >>> 3, w = t & 7;
    if (w === 0) yield [f, w, rv()];
    else if (w === 2) { const n = Number(rv()); yield [f, w, buf.subarray(p, p + n)]; p += n; }
    else if (w === 1) { yield [f, w, buf.subarray(p, p + 8)]; p += 8; }
    else if (w === 5) { yield [f, w, buf.subarray(p, p + 4)]; p += 4; }
    else throw new Error('wire type ' + w);
  }
}

async function createTp({ log = (m) => process.stderr.write(m + '\n'), dir = DIR } = {}) {
  // No edits to the shipped glue: give it the worker globals it expects instead.
  const bundle = ['engine_bundle.js', 'engine_bundle.node.js'].map(f => path.join(dir, f)).find(f => fs.existsSync(f));
  const src = fs.readFileSync(bundle, 'utf8').replace(/\n\/\/# sourceMappingURL=.*$/s, '');
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope ??= function () {};
  globalThis.location ??= { href: 'file://' + dir + '/' };
  const RealModule = WebAssembly.Module, realLog = console.log, realWarn = console.warn;
  globalThis.XMLHttpRequest = class { open(_m, u) { this.u = u; } send() { this.status = 200; const b = fs.readFileSync(path.join(dir, path.basename(this.u))); this.response = b.buffer.slice(b.byteOffset, b.byteOffset + b.length); } };
  // The glue probes memory64 with a 23-byte module; refuse it so that trace_processor.wasm (memory32) is used on any Node.
  WebAssembly.Module = new Proxy(RealModule, { construct(T, a) { if (a[0].byteLength === 23) throw new Error('memory64 disabled'); return new T(...a); } });
  console.log = (...a) => log(a.join(' ')); console.warn = (...a) => log(a.join(' '));
  vm.runInThisContext('(function(module,exports,require,process){' + src + '\n})').call(globalThis);
  let rx = [];
  const port = { postMessage: (d) => rx.push(Buffer.from(d)) };
  globalThis.onmessage({ data: port });
  await new Promise(r => setTimeout(r, 0)); // instantiation is synchronous here; let trace_processor_rpc_init run
  WebAssembly.Module = RealModule; delete globalThis.XMLHttpRequest; console.log = realLog; console.warn = realWarn;
  let seq = 1;
  // Synchronous RPC: returns the array of TraceProcessorRpc response messages (Buffers).
  function rpc(method, argField, argBytes) {
    const parts = [fVar(1, seq++), fVar(2, method)];
    if (argField) parts.push(fLen(argField, argBytes));
    rx = [];
    port.onmessage({ data: new Uint8Array(fLen(1, Buffer.concat(parts))) });
    const out = [];
    for (const [f, , v] of fields(Buffer.concat(rx))) if (f === 1) out.push(v);
    for (const m of out) for (const [f, , v] of fields(m)) if (f === 5) throw new Error('fatal: ' + v.toString());
    return out;
  }
  const pick = (msgs, field) => Buffer.concat(msgs.flatMap(m => [...fields(m)].filter(([f]) => f === field).map(([, , v]) => v)));
  return {
    status: () => pick(rpc(10), 210),                       // StatusResult bytes
    parse: (chunk) => pick(rpc(1, 101, chunk), 201),        // AppendTraceDataResult bytes
    notifyEof: () => pick(rpc(2), 212),                     // FinalizeDataResult bytes
    query: (queryArgs) => pick(rpc(3, 103, queryArgs), 203),// merged QueryResult bytes
    computeMetric: (a) => pick(rpc(5, 105, a), 205),
    traceSummary: (a) => pick(rpc(15, 110, a), 214),
    reset: (args = Buffer.alloc(0)) => rpc(11, 107, args),
  };
}
// decode merged QueryResult -> {cols, rows, error}
function decode(buf) {
  const cols = [], rows = []; let error = '';
  let cur = [];
  for (const [f, , v] of fields(buf)) {
    if (f === 1) cols.push(v.toString());
    else if (f === 2) error += v.toString();
    else if (f === 3) {
      let cells = Buffer.alloc(0), vi = [], fl = [], bl = [], str = [];
      for (const [g, w, x] of fields(v)) {
        if (g === 1) { if (w === 2) { cells = Buffer.concat([cells, x]); } }
        else if (g === 2) { if (w === 2) { let p = 0; while (p < x.length) { let r = 0n, s = 0n; for (;;) { const c = x[p++]; r |= BigInt(c & 127) << s; if (c < 128) break; s += 7n; } vi.push(BigInt.asIntN(64, r)); } } else vi.push(BigInt.asIntN(64, x)); }
        else if (g === 3) { if (w === 2 || w === 1) for (let p = 0; p < x.length; p += 8) fl.push(x.readDoubleLE(p)); }
        else if (g === 4) bl.push(x.toString('hex'));
        else if (g === 5) str = x.toString('utf8').split('\0');
      }
      let a = 0, b = 0, c = 0, d = 0;
      for (const t of cells) {
        let val = null;
        if (t === 2) { val = vi[a++]; if (val >= -(2n ** 53n) && val <= 2n ** 53n) val = Number(val); else val = val.toString(); }
        else if (t === 3) val = fl[b++]; else if (t === 4) val = str[c++]; else if (t === 5) val = bl[d++];
        cur.push(val);
        if (cur.length === cols.length) { rows.push(cur); cur = []; }
      }
    }
  }
  return { cols, rows, error };
}
module.exports = { createTp, decode, fields, fLen, fVar };

// usage: node trace_processor.js JOBS   a JSON file: [{trace, queries: [SQL, ...]}, ...]
// prints one JSON object: {version, results: [{error, seconds, queries: [{cols, rows}]}]}
if (require.main === module) {
  (async () => {
    const jobs = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
    const tp = await createTp({ log: (m) => { if (process.env.TP_LOG) process.stderr.write('[tp] ' + m + '\n'); } });
    const text = (bytes, number) => [...fields(bytes)].filter(([f]) => f === number).map(([, , v]) => v.toString()).join('');
    const results = jobs.map(({ trace, queries }, index) => {
      if (index) tp.reset();
      const start = performance.now();
      const data = fs.readFileSync(trace);
      let error = '';
      for (let at = 0; at < data.length && !error; at += 16 << 20) error = text(tp.parse(data.subarray(at, at + (16 << 20))), 2);
      error ||= text(tp.notifyEof(), 1);
      const seconds = (performance.now() - start) / 1000;
      const answers = queries.map((sql) => {
        const result = decode(tp.query(fLen(1, sql)));
        if (result.error) throw new Error(sql + ': ' + result.error);
        return { cols: result.cols, rows: result.rows };
      });
      return { error, seconds, queries: answers };
    });
    process.stdout.write(JSON.stringify({ version: text(tp.status(), 2), results }) + '\n');
  })().catch((e) => { process.stderr.write(String(e && e.stack || e) + '\n'); process.exit(1); });
}
