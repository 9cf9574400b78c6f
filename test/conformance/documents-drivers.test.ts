import { once } from "node:events";
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "@portico/adapters/clock/system";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { Secret } from "@portico/core";
import { afterAll, describe, expect, it } from "vitest";
import { documentsConformance } from "./documents.ts";
import { openAdapter } from "./open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-drivers-"));
const closing: (() => unknown)[] = [() => rmSync(folder, { recursive: true })];
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});
const others = [systemClock()];
const toKey = (name: string) => name.replaceAll("/", ":");

let databases = 0;
documentsConformance(
  "unstorage, db0 on SQLite, by its name",
  () => {
    const path = join(folder, `${++databases}.sqlite`);
    /** Another program, with a connection of its own. */
    const put = (column: "value" | "blob", name: string, content: string | Uint8Array | undefined) => {
      const database = new DatabaseSync(path);
      database.exec("PRAGMA busy_timeout = 5000");
      database.exec(
        "CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY, value TEXT, blob BLOB, " +
          "created_at TEXT DEFAULT CURRENT_TIMESTAMP, updated_at TEXT DEFAULT CURRENT_TIMESTAMP)",
      );
      database.prepare("DELETE FROM documents WHERE key = ?").run(toKey(name));
      if (content !== undefined)
        database.prepare(`INSERT INTO documents (key, ${column}) VALUES (?, ?)`).run(toKey(name), content);
      database.close();
    };
    return {
      adapter: unstorageDocuments({ id: "agents", driver: "db0", options: { path, tableName: "documents" }, pollMs: 20 }),
      edit: (name, text) => put("value", name, text),
      spoil: (name, bytes) => put("blob", name, bytes),
    };
  },
  { others },
);

documentsConformance(
  "unstorage, HTTP, by its name",
  async () => {
    const texts = new Map<string, string | Uint8Array>();
    const server = createServer(async (request, response) => {
      if (request.headers.authorization !== "Bearer of-this-store") return void response.writeHead(401).end();
      const key = decodeURIComponent(new URL(request.url!, "http://store").pathname.slice(1)).replaceAll("/", ":");
      if (key === "" || key.endsWith(":")) return void response.end(JSON.stringify([...texts.keys()]));
      if (request.method === "PUT") texts.set(key, Buffer.concat(await request.toArray()).toString());
      if (request.method === "DELETE") texts.delete(key);
      const text = texts.get(key);
      response.writeHead(text === undefined && request.method !== "DELETE" ? 404 : 200, { "content-type": "text/plain" });
      response.end(request.method === "GET" ? text : undefined);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(() => server.close());
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const headers = { authorization: new Secret("Bearer of-this-store") };
    return {
      adapter: unstorageDocuments({ id: "agents", driver: "http", options: { base, headers }, pollMs: 20 }),
      edit: (name, text) => void (text === undefined ? texts.delete(toKey(name)) : texts.set(toKey(name), text)),
      spoil: (name, bytes) => void texts.set(toKey(name), bytes),
    };
  },
  { others },
);

describe("a driver by its name", () => {
  it("that unstorage does not have, or whose package is missing, stops the start with a sentence", async () => {
    for (const [options, message] of [
      [{ driver: "redys" }, 'unstorage has no driver "redys"'],
      [{ driver: "azure-cosmos", options: {} }, 'The driver "azure-cosmos" of unstorage needs the package @azure/cosmos'],
      [{ driver: "db0", options: { connector: "oracle" } }, 'The driver "db0" of unstorage cannot be made from its options'],
    ] as const) {
      await expect(openAdapter(unstorageDocuments({ id: "agents", ...options }), others)).rejects.toMatchObject({
        name: "DocumentsUnavailable",
        message,
      });
    }
  });

  it("shows no secret of its options", () => {
    const adapter = unstorageDocuments({ id: "agents", driver: "redis", options: { password: new Secret("PASSWORD") } });
    expect(JSON.stringify(adapter)).not.toContain("PASSWORD");
  });

  it.runIf(process.platform === "linux")("closes its database with the app", async () => {
    const path = join(folder, "closed.sqlite");
    const openFiles = () => readdirSync("/proc/self/fd").map((fd) => tryReadlink(`/proc/self/fd/${fd}`));
    const { port, close } = await openAdapter(unstorageDocuments({ id: "agents", driver: "db0", options: { path } }), others);
    await port.write("a", "text", "absent");
    expect(openFiles()).toContain(path);
    await close();
    expect(openFiles()).not.toContain(path);
  });
});

/** A descriptor may be closed meanwhile. */
function tryReadlink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
