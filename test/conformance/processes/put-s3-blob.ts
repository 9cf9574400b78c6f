import { systemClock } from "@portico/adapters/clock/system";
import { s3Blobs } from "@portico/cluster/blobs/s3";
import { Secret } from "@portico/core";
import { openAdapter } from "../open-adapter.ts";

// A separate process. It puts this many bytes under `a` into the named store, reads them, and sends the maximum memory of both.
const [endpoint = "", bucket = "", region = "", accessKeyId = "", secretAccessKey = "", count = "0"] = process.argv.slice(2);
const credentials = { accessKeyId: new Secret(accessKeyId), secretAccessKey: new Secret(secretAccessKey) };
const { port, close } = await openAdapter(s3Blobs({ endpoint, bucket, region, ...credentials }), [systemClock()]);
const total = Number(count);
const held = (): number => process.memoryUsage().heapUsed + process.memoryUsage().external;
const before = held();
let most = 0;

async function* source(): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(64 * 1024, "x");
  for (let sent = 0; sent < total; sent += chunk.byteLength) {
    most = Math.max(most, held());
    yield chunk;
  }
}

const { size } = await port.put("a", source(), { maxBytes: Infinity });
const putting = most - before;
most = 0;
let read = 0;
for await (const chunk of (await port.open("a"))!.stream) {
  read += (chunk as Buffer).byteLength;
  most = Math.max(most, held());
}
process.send?.({ size, read, putting, reading: most - before });
await close();
process.disconnect();
