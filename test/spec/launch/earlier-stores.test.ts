import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FilledPlatform } from "../../fixtures/fill-platform.ts";
import { DATA_FOLDER, fixtureEnvironment } from "../../fixtures/platform-folder.ts";
import { jsonCaller } from "../../fixtures/platform-caller.ts";
import { readPostgres } from "../../fixtures/postgres-fixture.ts";
import { withToolsById, readAnswers } from "../../fixtures/read-answers.ts";
import { readDataDirectory, type StoredThings } from "../../fixtures/read-stores.ts";
import { type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { type PostgresDatabase, postgresDatabase } from "../../harness/postgres.ts";

interface Expected {
  readonly filled: FilledPlatform;
  readonly answers: Record<string, unknown>;
  readonly stored: StoredThings;
}

const fixtures = join(import.meta.dirname, "../../fixtures/stores");
const names = readdirSync(fixtures);
const readJson = (name: string, file: string) => JSON.parse(readFileSync(join(fixtures, name, file), "utf8"));

it("the stores of the first release are kept", () => {
  expect(names).toContain("first");
});

describe.each(names)("the data directory that version %s wrote", (name) => {
  const { filled, answers, stored }: Expected = readJson(name, "expected.json");
  const folder = temporaryFolder();
  const dataDir = join(folder.path, DATA_FOLDER);
  let service: PorticoProcess;
  beforeAll(() => cpSync(join(fixtures, name), folder.path, { recursive: true }));
  afterAll(async () => {
    await service?.[Symbol.asyncDispose]();
    folder.remove();
  });

  it("has every record, entry, work, blob and secret as it was written", async () => {
    const wanted = {
      collections: Object.keys(stored.records),
      streams: Object.keys(stored.log),
      works: Object.keys(stored.works),
      secrets: Object.keys(stored.secrets),
    };
    expect(await readDataDirectory(dataDir, wanted)).toEqual(stored);
  });

  it("is served: every call answers what it answered then", async () => {
    service = await startPortico({ cwd: folder.path, env: fixtureEnvironment });
    // What later versions tell beside it is theirs.
    expect(withToolsById(await readAnswers(service, dataDir, filled))).toMatchObject(withToolsById(answers));
  });

  it("is searched: every workflow run is found", async () => {
    const { workflow } = jsonCaller(service, dataDir);
    const found = await workflow("GET", "/api/workflow/runs/search?limit=200");
    const runIds = found.runs.map(({ runId }: { runId: string }) => runId);
    expect(runIds).toEqual(expect.arrayContaining(Object.values(filled.workflowRuns)));
    const { runs } = await workflow("GET", "/api/workflow/runs/search?status=waiting_human");
    expect(runs).toMatchObject([{ runId: filled.workflowRuns.notice, workflowId: "notice", version: expect.any(String) }]);
  });

  it("is gone on with: tokens open what they opened, and a run that waited at a gate ends when it is decided", async () => {
    const { agent, workflow } = jsonCaller(service, dataDir);
    const models = await fetch(`${service.url("proxy")}/models`, { headers: { authorization: `Bearer ${filled.safeToken}` } });
    expect(models.status).toBe(200);
    const { executionGrantId } = await agent("POST", "/api/execution-grants", { workflowId: "notice" });
    const run = `/api/workflow/notice/runs/${filled.workflowRuns.notice}`;
    const decision = { decision: "approve", values: { audience: "members" } };
    await workflow("POST", `${run}/gate`, decision, { "x-execution-grant": executionGrantId });
    await expect.poll(async () => (await workflow("GET", run)).status, { timeout: 30_000 }).toBe("completed");
    expect((await workflow("GET", run)).finalOutputs).toEqual({ text: "To members: The lift", signed: true });
    const trigger = await fetch(`${service.url("agent")}/api/webhook/helper`, {
      method: "POST",
      headers: { authorization: `Bearer ${filled.webhookSecret}`, "content-type": "application/json" },
      body: JSON.stringify({ event: "build.done", payload: { what: "another" } }),
    });
    expect(trigger.status).toBe(200);
    expect(await service.stop()).toBe(0);
  });
});

const database: PostgresDatabase | undefined = await postgresDatabase();
afterAll(() => database?.drop());

describe.skipIf(!database).each(names)("the PostgreSQL schema that version %s wrote", (name) => {
  it("has every record and entry as it was written", async () => {
    await database!.query("DROP SCHEMA IF EXISTS portico CASCADE");
    await database!.query(readFileSync(join(fixtures, name, "postgres.sql"), "utf8"));
    expect(await readPostgres(database!.url)).toEqual(readJson(name, "expected-postgres.json"));
  });
});
