/**
 * The minimum of a durable admission: node:http, JSON.parse, and one row in SQLite, synced before the 202. Requests of one turn of the
 * event loop share a commit. Its rate shows how fast the machine is.
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ServerJob } from "./server.ts";

process.on("message", async (job: ServerJob) => {
  if (job.do !== "open") return process.send?.({});
  const database = new DatabaseSync(join(job.dataDir, "bare.sqlite"));
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE queries (id TEXT PRIMARY KEY, body TEXT)");
  const insert = database.prepare("INSERT INTO queries VALUES (?, ?)");
  const waiting: { readonly id: string; readonly text: string; readonly response: ServerResponse }[] = [];
  const commit = () => {
    const group = waiting.splice(0);
    database.exec("BEGIN IMMEDIATE");
    for (const { id, text } of group) insert.run(id, text);
    database.exec("COMMIT");
    for (const { id, response } of group) {
      response.writeHead(202, { "content-type": "application/json" }).end(JSON.stringify({ ok: true, clientRequestId: id }));
    }
  };
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      const { clientRequestId } = JSON.parse(text) as { clientRequestId: string };
      waiting.push({ id: clientRequestId, text, response });
      if (waiting.length === 1) setImmediate(commit);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
