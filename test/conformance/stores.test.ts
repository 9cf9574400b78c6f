import { existsSync, readdirSync } from "node:fs";
import { memoryStore } from "@portico/adapters/stores/memory";
import { sqliteStore, sqliteStorePaths } from "@portico/adapters/stores/sqlite";
import { createApp, type Port, ports, Secret } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

const kept: readonly Port<any>[] = [
  ports.records,
  ports.log,
  ports.engine,
  ports.blobs,
  ports.secrets,
  ports.signing,
  ports.sealing,
];

it.each([
  ["memoryStore", () => memoryStore()],
  ["sqliteStore", () => sqliteStore({ dir: folder.path })],
])("%s fills everything that areas keep, and nothing else", async (_name, store) => {
  await using app = await createApp({ name: "kept", adapters: store() });
  expect(kept.filter((port) => !app.has(port))).toEqual([]);
  expect(store()).toHaveLength(kept.length);
});

it("sqliteStore fills the named ports alone, and makes nothing else in its folder", async () => {
  await using app = await createApp({ name: "kept", adapters: sqliteStore({ dir: folder.path, ports: [ports.secrets] }) });
  await app.port(ports.secrets).keep("a", () => new Secret("b"));
  expect(kept.filter((port) => app.has(port))).toEqual([ports.secrets]);
  expect(readdirSync(folder.path).filter((name) => !name.endsWith(".lock"))).toEqual(["credentials.json"]);
});

it("sqliteStore keeps what it says where it says, and signs and seals with its keys after a restart", async () => {
  const opened = () => createApp({ name: "kept", adapters: sqliteStore({ dir: folder.path }) });
  const first = await opened();
  await first.port(ports.records).collection({ name: "notes" }).put("tea", { milk: false }, "absent");
  const signature = await first.port(ports.signing).sign("link", "message");
  const sealed = await first.port(ports.sealing).seal("note", "no milk");
  await first.close();
  for (const path of Object.values(sqliteStorePaths(folder.path))) expect(existsSync(path), path).toBe(true);
  await using again = await opened();
  expect((await again.port(ports.records).collection({ name: "notes" }).get("tea"))?.value).toEqual({ milk: false });
  expect(await again.port(ports.signing).verify("link", "message", signature)).toBe(true);
  expect(await again.port(ports.sealing).open("note", sealed)).toBe("no milk");
});

it("sqliteStore signs with a key that is found among the secrets by its host", async () => {
  const signed = async (signingKey: Secret | ((secrets: ports.Secrets) => Promise<Secret>)) => {
    await using app = await createApp({ name: "kept", adapters: sqliteStore({ dir: folder.path, signingKey }) });
    return app.port(ports.signing).sign("link", "message");
  };
  const found = await signed(async (secrets) => (await secrets.keep("own", () => new Secret("the key of a host"))).value);
  expect(await signed(new Secret("the key of a host"))).toBe(found);
  expect(await signed(new Secret("another key"))).not.toBe(found);
});
