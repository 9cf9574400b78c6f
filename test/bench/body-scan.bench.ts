/**
 * Measures how long it takes to read `model` and `stream` of a body. Run it with `node test/bench/body-scan.bench.ts`; it takes about ten
 * seconds. It measures the scanner on whole bodies, and then several ways to skip a long string. Nearly all bytes of a large body are in
 * long strings.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import { BodyScan, scanBody } from "../../plugins/src/model-proxy/body-scan.ts";

const MIB = 1024 * 1024;
const BIG = 200 * MIB;
const CHUNK = 64 * 1024;
const HEAD = '{"model":"m-large","stream":true,"max_tokens":1024,"messages":[';
const ROUNDS = 5;

interface Row {
  readonly [column: string]: string;
}

console.log(`node ${process.version}, best of ${ROUNDS} rounds`);
console.table(smallBodies());
console.table([
  bigBody("one base64 string", `${HEAD}{"role":"user","content":"`, randomBytes(CHUNK * 0.75).toString("base64"), '"}]}'),
  bigBody("many small messages", HEAD, message("How would you explain a B-tree to somebody in a hurry?")),
  bigBody("code, an escape every line", HEAD, message('  const next = table[state];\n\treturn "next";\n'.repeat(40))),
  bigBody("Chinese text", HEAD, message("请解释一下数据库索引的工作原理。".repeat(20))),
  bigBody("nothing but brackets", HEAD, "[[],[[]],{}],"),
]);
console.table(skipping());

/** The body of nearly every call: 1 KiB. It is complete when it is scanned. */
function smallBodies(): Row[] {
  const body = Buffer.from(
    JSON.stringify({
      model: "m-large",
      max_tokens: 1024,
      temperature: 0.7,
      stream: true,
      system: "You are a helpful assistant. ".repeat(5),
      messages: [
        { role: "user", content: 'What does "eventually consistent" mean?\nIn two sentences, please. '.repeat(5) },
        { role: "assistant", content: [{ type: "text", text: "Replicas agree in the end. ".repeat(6) }] },
        { role: "user", content: "And how long does that take? ".repeat(7) },
      ],
    }),
  );
  const ways: [string, () => unknown][] = [
    ["scanBody", () => scanBody(body)],
    ["JSON.parse", () => JSON.parse(body.toString("utf8"))],
  ];
  return ways.map(([by, run]) => {
    const took = perCall(run);
    return { body: `chat, ${body.length} bytes`, by, "µs per body": (took / 1000).toFixed(2), "MB/s": rate(body.length, took) };
  });
}

/**
 * A body of 200 MiB, in chunks as a socket returns them. Every byte is read from main memory, not from the cache. The slowest chunk is that
 * of the best round: in other rounds, other programs used the machine.
 */
function bigBody(name: string, head: string, middle: string, tail = "0]}"): Row {
  const size = Buffer.byteLength(middle);
  const body = Buffer.concat([Buffer.from(head), Buffer.alloc(Math.floor(BIG / size) * size, middle), Buffer.from(tail)]);
  let best = Number.POSITIVE_INFINITY;
  let slowestChunk = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const scan = new BodyScan();
    let total = 0;
    let slowest = 0;
    for (let from = 0; from < body.length; from += CHUNK) {
      const chunk = body.subarray(from, from + CHUNK);
      const start = process.hrtime.bigint();
      scan.push(chunk);
      const took = Number(process.hrtime.bigint() - start);
      total += took;
      slowest = Math.max(slowest, took);
    }
    if (scan.end().model !== "m-large") throw new Error("the model was not found");
    if (total < best) [best, slowestChunk] = [total, slowest];
  }
  const milliseconds = { "ms per body": (best / 1e6).toFixed(0), "slowest chunk, ms": (slowestChunk / 1e6).toFixed(3) };
  return { body: `${name}, ${(body.length / MIB).toFixed(0)} MiB`, ...milliseconds, "MB/s": rate(body.length, best) };
}

function message(content: string): string {
  return `${JSON.stringify({ role: "user", content })},`;
}

/** 64 KiB of base64, from its first byte to the closing quote. The name of each way says which checks it leaves out. */
function skipping(): Row[] {
  const text = Buffer.from(`${randomBytes(CHUNK * 0.75).toString("base64")}"`);
  const stops = new Uint8Array(256).fill(1, 0, 0x20).fill(1, 0x80);
  stops[0x22] = 1;
  stops[0x5c] = 1;
  const firstStop = /[^ !#-[\]-\x7f]/;
  const inScanner = new BodyScan();
  inScanner.push(Buffer.from('{"text":"'));
  const ways: [string, (text: Buffer) => unknown][] = [
    ["BodyScan.push", (bytes) => inScanner.push(bytes.subarray(0, -1))],
    ["byte by byte, table of 256", (bytes) => bytesUntilStop(bytes, stops)],
    ["four bytes, DataView", viewUntilStop],
    ["four bytes, Int32Array", wordsUntilStop],
    ["latin1 string and a regular expression", (bytes) => bytes.toString("latin1").search(firstStop)],
    ["indexOf the quote, isUtf8, JSON.parse of the latin1 string", nativeUntilStop],
    [
      "indexOf quote and backslash, isUtf8 (misses control characters)",
      (bytes) => [bytes.indexOf(0x22), bytes.indexOf(0x5c), isUtf8(bytes)],
    ],
  ];
  return ways.map(([way, run]) => {
    // V8 optimizes a function after many calls, not after long calls.
    perCall(() => run(text.subarray(-512)));
    const took = perCall(() => run(text), 2_000);
    return { "skipping 64 KiB of a string": way, "MB/s": rate(text.length, took) };
  });
}

function bytesUntilStop(text: Uint8Array, stops: Uint8Array): number {
  let at = 0;
  while (at < text.length && stops[text[at] as number] === 0) at += 1;
  return at;
}

function viewUntilStop(text: Uint8Array): number {
  const view = new DataView(text.buffer, text.byteOffset, text.length);
  let at = 0;
  while (at + 4 <= text.length && !hasStop(view.getInt32(at, true))) at += 4;
  return at;
}

function wordsUntilStop(text: Uint8Array): number {
  const start = -text.byteOffset & 3;
  const words = new Int32Array(text.buffer, text.byteOffset + start, (text.length - start) >> 2);
  let index = 0;
  while (index < words.length && !hasStop(words[index] as number)) index += 1;
  return start + index * 4;
}

function hasStop(word: number): boolean {
  return (((word - 0x20202020) | ((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101)) & 0x80808080) !== 0;
}

function nativeUntilStop(text: Buffer): number {
  const end = text.indexOf(0x22);
  if (isUtf8(text.subarray(0, end))) JSON.parse(`"${text.toString("latin1", 0, end)}"`);
  return end;
}

/** Nanoseconds of one call, in the best round. */
function perCall(run: () => unknown, calls = 100_000): number {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const start = process.hrtime.bigint();
    for (let call = 0; call < calls; call += 1) run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / calls);
  }
  return best;
}

function rate(bytes: number, nanoseconds: number): string {
  return ((bytes * 1000) / nanoseconds).toFixed(0);
}
