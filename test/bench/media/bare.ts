/** The minimum for moving a file: node:http into a file that is synced, and createReadStream for reading it. */
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { ServerJob } from "./server.ts";

process.on("message", async (job: ServerJob) => {
  if (job.do !== "open") return process.send?.({});
  let stored = 0;
  const server = createServer(async (request, response) => {
    try {
      if (request.method === "POST") {
        const path = join(job.dataDir, `${stored++}`);
        await pipeline(request, createWriteStream(path));
        const file = await open(path, "r");
        await file.datasync();
        await file.close();
        response.end(JSON.stringify({ path }));
        return;
      }
      const url = new URL(request.url!, "http://bare");
      const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
      const part = start === undefined ? {} : { start: Number(start), end: Number(end) };
      response.writeHead(start === undefined ? 200 : 206);
      await pipeline(createReadStream(url.searchParams.get("path")!, part), response);
    } catch {
      response.destroy();
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
