import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createBusHub, memoryBus } from "@portico/adapters/bus/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { sharedFolderDocuments } from "@portico/cluster/documents/shared-folder";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { createLocks } from "@portico/cluster/records/postgres/locks";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { Client } from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../harness/portico-process.ts";
import { postgresDatabase } from "../harness/postgres.ts";
import { documentsConformance } from "./documents.ts";
import { openAdapter } from "./open-adapter.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());
const database = await postgresDatabase();
afterAll(() => database?.drop());
const url = database?.url ?? "";

let folders = 0;
const newFolder = () => join(folder.path, `${++folders}`);
const others = [postgresRecords({ url, poolSize: 2 }), systemClock()];

describe.skipIf(!database)("documents/shared-folder", () => {
  documentsConformance(
    "a shared folder",
    () => {
      const dir = newFolder();
      const edit = (name: string, text: string | Uint8Array | undefined): void => {
        const path = join(dir, name);
        if (text === undefined) return unlinkSync(path);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text);
      };
      return { adapter: sharedFolderDocuments({ id: "agents", dir }), edit, spoil: edit };
    },
    { others },
  );

  it("loses no save of three processes that change one document at the same time", async () => {
    const dir = newFolder();
    const script = join(import.meta.dirname, "processes/append-line.ts");
    const children = ["a", "b", "c"].map((name) => fork(script, [url, dir, name, "40"]));
    await Promise.all(children.map((child) => once(child, "message")));
    const saved = await Promise.all(
      children.map(async (child) => {
        const answered = once(child, "message");
        child.send("go");
        const [[answer]] = await Promise.all([answered, once(child, "exit")]);
        return answer as string[];
      }),
    );
    const lines = readFileSync(join(dir, "a/agent.json"), "utf8").trimEnd().split("\n");
    expect(lines.toSorted()).toEqual(saved.flat().toSorted());
  });

  it("waits for a process that saves the same document, and not for one that saves another", async () => {
    const { port, close } = await openAdapter(sharedFolderDocuments({ id: "agents", dir: newFolder() }), others);
    const other = new Client({ connectionString: url });
    await other.connect();
    await other.query(`BEGIN; ${createLocks("portico").writers(["_documents/agents/a/agent.json"])}`);
    let isSaved = false;
    const saving = port.write("a/agent.json", "1", "absent").then(() => (isSaved = true));
    await port.write("b/agent.json", "1", "absent");
    await expect.poll(async () => (await database!.query("SELECT 1 FROM pg_locks WHERE NOT granted")).length).toBe(1);
    expect(isSaved).toBe(false);
    await other.end();
    await saving;
    expect(await port.list()).toEqual(["a/agent.json", "b/agent.json"]);
    await close();
  });

  it("tells other machines of a save over the bus", async () => {
    const bus = memoryBus({ hub: createBusHub() });
    const one = await openAdapter(sharedFolderDocuments({ id: "agents", dir: newFolder() }), [
      ...others,
      bus,
      memoryTelemetry({}),
    ]);
    const another = await openAdapter(bus, [memoryTelemetry({})]);
    const told: unknown[] = [];
    another.port.subscribe("documents/agents", { received: (message) => told.push(message), missed() {} });
    const { version } = await one.port.write("a/agent.json", "1", "absent");
    await one.port.write("a/agent.json", "2", "absent").catch(() => {});
    await one.port.remove("a/agent.json", version);
    await expect.poll(() => told).toEqual([{ name: "a/agent.json" }, { name: "a/agent.json" }]);
    await Promise.all([one.close(), another.close()]);
  });

  it("throws TypeError where the records are not in PostgreSQL", async () => {
    const opening = openAdapter(sharedFolderDocuments({ id: "agents", dir: newFolder() }), [memoryRecords(), systemClock()]);
    await expect(opening).rejects.toThrow(TypeError);
  });
});
