import { createHash, randomBytes } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { Readable } from "node:stream";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { openAdapter } from "../../conformance/open-adapter.ts";

// Puts new blobs and replaces old ones until it is killed. Every blob ends with the hash of its other bytes. Each acknowledged blob is
// appended to a file as key and hash.
const [dir = "", life = "", acknowledgements = ""] = process.argv.slice(2);
const said = openSync(acknowledgements, "a");
const { port } = await openAdapter(fileBlobs({ dir }));

async function put(key: string): Promise<void> {
  const bytes = randomBytes(Math.floor(Math.random() * 300_000));
  const whole = Buffer.concat([bytes, createHash("sha256").update(bytes).digest()]);
  const chunks = Array.from({ length: Math.ceil(whole.byteLength / 10_000) }, (_, at) =>
    whole.subarray(at * 10_000, (at + 1) * 10_000),
  );
  const { sha256 } = await port.put(key, Readable.from(chunks), { maxBytes: Infinity });
  writeSync(said, `${key} ${sha256}\n`);
}

async function write(writer: number): Promise<never> {
  for (let at = 0; ; at++) {
    await put(`new/${life}/${writer}-${at}`);
    await put(`replaced/${writer}`);
  }
}

process.send?.("ready");
await Promise.all([0, 1, 2, 3].map(write));
