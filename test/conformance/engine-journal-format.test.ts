import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { memoryRecords } from "@portico/adapters/records/memory";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { createApp } from "@portico/core";
import { afterAll, expect, it } from "vitest";
import { found, type OpenEngine, openEngine, settled } from "./engine-subject.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-engine-format-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
/** A journal's file, for SQL of one's own. */
async function journal(sql: string): Promise<string> {
  const path = join(folder, `${++files}.db`);
  // The store's own tables are there before the journal's.
  const app = await createApp({ name: "store", adapters: [sqliteRecords({ path })] });
  await app.close();
  execute(path, sql);
  return path;
}

function execute(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

async function open(path: string, ran: string[] = []): Promise<OpenEngine> {
  const clock = createManualClock();
  const adapters = [embeddedEngine({ path }), memoryRecords(), manualClock({ clock }), memoryTelemetry({})];
  return openEngine({ adapters, pass: clock.advance }, (engine) =>
    engine.define(
      "kind",
      async (context) => {
        ran.push(`${context.id} ${context.attempt}`);
        const step = await context.step("done", async () => "again");
        return [step, await context.waitFor("word"), await context.waitFor("word")];
      },
      { onInterrupted: "resume" },
    ),
  );
}

const FORMAT_1 = `
  CREATE TABLE "_engine_owner" (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    format INTEGER NOT NULL, fence INTEGER NOT NULL, owner TEXT NOT NULL, until INTEGER NOT NULL
  );
  CREATE TABLE "_engine_work" (
    work INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, key TEXT NOT NULL,
    state TEXT NOT NULL, place INTEGER, attempt INTEGER NOT NULL DEFAULT 0,
    accepted INTEGER NOT NULL, ended INTEGER, output TEXT, error TEXT, reason TEXT
  );
  CREATE INDEX "_engine_line" ON "_engine_work" (kind, place) WHERE place IS NOT NULL;
  CREATE INDEX "_engine_open" ON "_engine_work" (kind, key, work) WHERE ended IS NULL;
  CREATE INDEX "_engine_ended" ON "_engine_work" (ended) WHERE ended IS NOT NULL;
  CREATE INDEX "_engine_unclosed" ON "_engine_work" (kind) WHERE state = 'unclosed';
  CREATE TABLE "_engine_notes" (
    work INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL,
    state TEXT NOT NULL, value TEXT,
    PRIMARY KEY (work, kind, name, number)
  ) WITHOUT ROWID;
  INSERT INTO "_engine_owner" VALUES (1, 1, 3, 'embedded', 0);
  INSERT INTO "_engine_work" (work, id, kind, key, state, place, attempt, accepted, ended, output) VALUES
    (1, 'ended', 'kind', 'ended', 'completed', NULL, 1, 1893456000000, 1893456000000, '"kept"'),
    (2, 'executing', 'kind', 'executing', 'executing', NULL, 1, 1893456000000, NULL, NULL),
    (3, 'resumed', 'kind', 'resumed', 'lined', -1, 1, 1893456000000, NULL, NULL),
    (4, 'lined', 'kind', 'lined', 'lined', 7, 0, 1893456000000, NULL, NULL),
    (5, 'queued', 'kind', 'lined', 'queued', NULL, 0, 1893456000000, NULL, NULL);
  INSERT INTO "_engine_notes" VALUES
    (2, 'input', '', 0, 'done', '{}'), (2, 'step', 'done', 0, 'done', '"once"'), (2, 'signal', 'word', 1, 'done', '"early"'),
    (3, 'input', '', 0, 'done', '{}'), (4, 'input', '', 0, 'done', '{}'), (5, 'input', '', 0, 'done', '{}');
`;

it("a journal of format 1 is taken over: what it has goes on, and can be parked", async () => {
  const path = await journal(FORMAT_1);
  const ran: string[] = [];
  const { engine, pass, ended, close } = await open(path, ran);
  await engine.ready();
  await found(() => ran.length === 3);
  expect(ran).toEqual(["executing 2", "resumed 2", "lined 1"]);
  expect(await engine.status("ended")).toMatchObject({ state: "completed", output: "kept" });
  const waits = async () => {
    await settled();
    await pass(1000);
    await settled();
    return (await Promise.all(["executing", "lined"].map((id) => engine.status(id)))).every((each) => each?.state === "waiting");
  };
  while (!(await waits()));
  await engine.signal("executing", "word", "late");
  expect(await ended("executing")).toMatchObject({ output: ["once", "early", "late"] });
  for (const id of ["lined", "queued", "resumed"]) {
    for (const word of [1, 2]) await engine.signal(id, "word", word);
    expect(await ended(id)).toMatchObject({ output: ["again", 1, 2] });
  }
  await close();
});

it("a journal of a newer format is refused, and stays as it is", async () => {
  const path = await journal(FORMAT_1.replace("(1, 1, 3,", "(1, 99, 3,"));
  await expect(open(path)).rejects.toMatchObject({ name: "EngineUnavailable" });
  execute(path, `UPDATE "_engine_owner" SET format = 1`);
  await (await open(path)).close();
});

it("parked work is not looked at when a process starts, however much of it there is", async () => {
  const path = await journal(FORMAT_1);
  await (await open(path)).close();
  execute(
    path,
    `DELETE FROM "_engine_work"; DELETE FROM "_engine_notes";
     WITH RECURSIVE counted (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM counted WHERE at < 20000)
     INSERT INTO "_engine_work" (work, id, kind, key, state, attempt, accepted, due, awaited)
       SELECT at, 'work-' || at, 'kind', 'work-' || at, 'parked', 1, 0, iif(at % 2, 1893456000000 + at * 1000, NULL), '["word"]' FROM counted;
     INSERT INTO "_engine_notes" SELECT work, 'input', '', 0, 'done', '{}' FROM "_engine_work"`,
  );
  const ran: string[] = [];
  const { engine, pass, close } = await open(path, ran);
  await engine.ready();
  await settled();
  expect(ran).toEqual([]);
  await pass(5000);
  await found(() => ran.length === 3);
  await settled();
  expect(ran).toEqual(["work-1 1", "work-3 1", "work-5 1"]);
  await engine.signal("work-20000", "word", 1);
  await found(() => ran.length === 4);
  expect(ran[3]).toBe("work-20000 1");
  await close();
});
