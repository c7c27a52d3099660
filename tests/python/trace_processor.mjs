// Opens a trace in Perfetto's trace processor (WebAssembly) and prints the rows of SQL queries as JSON.
// Usage: node trace_processor.mjs FOLDER TRACE SQL..., with the folder that scripts/perfetto.sh fills.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

// The bridge of Perfetto's page starts in a worker of a browser. These edits give it the module's bytes, take
// the build for 32 bits, and keep the bridge where this script finds it.
const EDITS = [
  ["this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;"],
  ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasmBytes,"],
  [
    "const wasmBridge = new wasm_bridge_1.WasmBridge();",
    "const wasmBridge = new wasm_bridge_1.WasmBridge(); globalThis.wasmBridge = wasmBridge;",
  ],
];
const [folder, trace, ...queries] = process.argv.slice(2);

let bridge = readFileSync(join(folder, "engine_bundle.node.js"), "utf8");
for (const [from, to] of EDITS) {
  if (!bridge.includes(from)) throw new Error(`the bridge has no "${from}"`);
  bridge = bridge.replace(from, to);
}
const { EngineBase } = await import(pathToFileURL(join(folder, "engine.mjs")).href);
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: `${pathToFileURL(folder).href}/` };
globalThis.wasmBytes = new Uint8Array(readFileSync(join(folder, "trace_processor.wasm")));
vm.runInThisContext(bridge);

class Engine extends EngineBase {
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (message) => {
      if (message.data instanceof Uint8Array) this.onRpcResponseBytes(message.data);
    };
  }

  rpcSendRequestBytes(data) {
    this.port.postMessage(data);
  }
}

const { port1, port2 } = new MessageChannel();
globalThis.wasmBridge.initialize(port1);
const engine = new Engine(port2);
await engine.parse(new Uint8Array(readFileSync(trace)));
await engine.notifyEof();
const answers = [];
for (const query of queries) {
  const result = await engine.query(query);
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(result.columns().map((name) => [name, row.get(name)])));
  }
  answers.push(rows);
}
console.log(JSON.stringify(answers, (_, value) => (typeof value === "bigint" ? Number(value) : value)));
process.exit(0);
