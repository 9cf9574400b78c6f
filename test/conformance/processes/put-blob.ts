import { fileBlobs } from "@portico/adapters/blobs/files";
import { openAdapter } from "../open-adapter.ts";
import { peakResident } from "../../harness/peak-resident.ts";

// A separate process. It puts this many bytes under `a`, reads them, and sends the result. It sends `writing` when a part is
// stored.
const [dir = "", count = "0"] = process.argv.slice(2);
const { port, close } = await openAdapter(fileBlobs({ dir }));
const total = Number(count);

async function* source(): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(64 * 1024, "x");
  for (let sent = 0; sent < total; sent += chunk.byteLength) {
    if (sent === 16 * chunk.byteLength) process.send?.("writing");
    yield chunk;
  }
}

try {
  const before = peakResident();
  const { size } = await port.put("a", source(), { maxBytes: Infinity });
  let read = 0;
  for await (const chunk of (await port.open("a"))!.stream) read += (chunk as Buffer).byteLength;
  process.send?.({ size, read, grownKib: (peakResident() - before) / 1024 });
} catch (error) {
  process.send?.({ name: (error as Error).name, code: ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code });
}
await close();
process.disconnect();
