import { fileBlobs } from "@portico/adapters/blobs/files";
import { openAdapter } from "../open-adapter.ts";

// A process of its own: it puts so many bytes under `a`, reads them, and sends what became of it. It sends `writing` when some are stored.
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
  const before = process.resourceUsage().maxRSS;
  const { size } = await port.put("a", source(), { maxBytes: Infinity });
  let read = 0;
  for await (const chunk of (await port.open("a"))!.stream) read += (chunk as Buffer).byteLength;
  process.send?.({ size, read, grownKib: process.resourceUsage().maxRSS - before });
} catch (error) {
  process.send?.({ name: (error as Error).name, code: ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code });
}
await close();
process.disconnect();
