import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { ports } from "@portico/core";
import { afterAll, expect, it } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-chaos-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LIVES = 3;

it("has every acknowledged write after a kill at any instant, and every batch whole, and takes no kill for a loss", async () => {
  const path = join(folder, "records.db");
  const acknowledged: string[] = [];
  for (let life = 0; life < LIVES; life++) acknowledged.push(...(await liveAndDie(path, `life${life}`)));
  expect(acknowledged.length).toBeGreaterThan(LIVES);

  const { port, close } = await openAdapter(sqliteRecords({ path }));
  const entries = await idsOf(port.collection({ name: "entries", indexes: { life: ["life"] } }));
  const pairs = await idsOf(port.collection({ name: "pairs" }));
  const losses = await idsOf(port.collection({ name: ports.STORE_LOSSES }));
  await close();
  expect([...losses]).toEqual([]);
  expect(acknowledged.filter((id) => !entries.has(id))).toEqual([]);
  const batched = [...entries].filter((id) => {
    const [, writer, at] = id.split("-");
    return (Number(writer) + Number(at)) % 3 === 0;
  });
  expect([...pairs].sort()).toEqual(batched.sort());
});

/** Lets a process write until it is killed, some time after it began. Returns what it acknowledged. */
async function liveAndDie(path: string, life: string): Promise<string[]> {
  const script = join(import.meta.dirname, "processes/put-until-killed.ts");
  const acknowledgements = join(folder, life);
  const child = fork(script, [path, life, acknowledgements]);
  const exited = once(child, "exit");
  child.once("message", () => setTimeout(() => child.kill("SIGKILL"), 100 + Math.random() * 300));
  expect(await exited).toEqual([null, "SIGKILL"]);
  // A last line without a line end was cut by the kill. It acknowledges nothing.
  return readFileSync(acknowledgements, "utf8").split("\n").slice(0, -1);
}

async function idsOf(collection: ports.Collection<object>): Promise<Set<string>> {
  const ids = new Set<string>();
  for (let after: string | undefined; ;) {
    const page: ports.Page<object> = await collection.query({ after, limit: 1000 });
    for (const item of page.items) ids.add(item.id);
    after = page.next;
    if (after === undefined) return ids;
  }
}
