import { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readPage, ROWS } from "../../../console/src/blocks/list/read-page.ts";
import { createRuns } from "../../../plugins/src/conversations-runs/runs/runs.ts";
import type { RunRecord } from "../../../plugins/src/workflow-service/runs/run-record.ts";
import { createRunRecords } from "../../../plugins/src/workflow-service/runs/run-records.ts";
import { type AgentService, startAgentService } from "../../harness/agent-app.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

/** Each query has a full page among the few. */
const [FEW, MANY] = [300, 5_000];
const DAY = Date.UTC(2020, 0, 1);
/** Runs in one commit. */
const GROUP = 500;

/** What the store answered: statements that read, and their rows. An index covers every query, so that no other row is visited. */
const read = { statements: 0, rows: 0 };
const prepare = DatabaseSync.prototype.prepare;

/** Counts what prepared statements read. */
function counted(this: DatabaseSync, sql: string): ReturnType<typeof prepare> {
  const statement = prepare.call(this, sql);
  const [all, get] = [statement.all.bind(statement), statement.get.bind(statement)];
  const note = (rows: number) => {
    // The service's own chores read other tables.
    if (!/FROM "(?:workflow-)?run(?:s|-list|-tags)"/.test(sql)) return;
    read.statements++;
    read.rows += rows;
  };
  statement.all = ((...values: []) => {
    const rows = all(...values);
    note(rows.length);
    return rows;
  }) as typeof all;
  statement.get = ((...values: []) => {
    const row = get(...values);
    note(1);
    return row;
  }) as typeof get;
  return statement;
}

/** A list with a number of runs, and one call of it: the rows, and the next page. */
interface Listed {
  fill(from: number, to: number): Promise<void>;
  ask(query: URLSearchParams): Promise<{ readonly rows: readonly unknown[]; readonly next?: string }>;
  readonly after: string;
}

describe("a page of the console's list of runs", () => {
  let agents: AgentService;
  let workflows: WorkflowService;
  beforeAll(async () => {
    DatabaseSync.prototype.prepare = counted;
    agents = await startAgentService();
    workflows = await startWorkflowService({ definitions: { "bulk.json": { nodes: { a: { type: "transform", with: {} } } } } });
  });
  afterAll(async () => {
    DatabaseSync.prototype.prepare = prepare;
    await Promise.all([agents?.close(), workflows?.close()]);
  });

  const startedAt = (at: number) => new Date(DAY + at * 60_000).toISOString();
  const idOf = (at: number) => String(at).padStart(6, "0");
  const words = (at: number) => `Usual words ${at % 5 === 0 ? "fifth" : "others"}`;
  const ofAgents: Listed = {
    after: "after",
    async fill(from, to) {
      const runs = createRuns(agents.app.port(ports.records));
      for (let first = from; first < to; first += GROUP) {
        const group = Array.from({ length: Math.min(GROUP, to - first) }, (_, index) => first + index);
        await runs.writeAll(
          group.flatMap((at) =>
            runs.begin({
              ...{ run_id: `run_${idOf(at)}`, user_id: "owner", agent_id: "helper", started_at: startedAt(at) },
              ...{ status: at % 4 === 0 ? ("failed" as const) : ("idle" as const), title: words(at) },
            }),
          ),
        );
      }
    },
    async ask(query) {
      const { status, body } = await agents.call("owner", "GET", `/api/runs/search?${query}`);
      expect(status).toBe(200);
      return { rows: body.runs, next: body.next };
    },
  };
  const ofWorkflows: Listed = {
    after: "cursor",
    async fill(from, to) {
      const records = workflows.app.port(ports.records);
      const runs = createRunRecords(records);
      for (let first = from; first < to; first += GROUP) {
        const group = Array.from({ length: Math.min(GROUP, to - first) }, (_, index) => first + index);
        await records.batch(
          group.flatMap((at) =>
            runs.begin({
              ...{ runId: `wrun_${idOf(at)}`, workflowId: "bulk", name: "bulk", instance: "i", definition: "a".repeat(64) },
              ...{ nodeCount: 1, completedNodeCount: 0, status: at % 4 === 0 ? "failed" : "interrupted" },
              ...{ startedAt: startedAt(at), completedAt: startedAt(at), error: { code: "quota", message: words(at) } },
            } satisfies RunRecord),
          ),
        );
      }
    },
    async ask(query) {
      const { status, body } = await workflows.call("GET", `/api/workflow/runs/search?${query}`);
      expect(status).toBe(200);
      return { rows: body.runs, next: body.next };
    },
  };

  it.each([
    ["agents", () => ofAgents, ["", "status=failed", "q=usual", "agent_id=helper&q=fifth", "status=running"]],
    ["workflows", () => ofWorkflows, ["", "workflowId=bulk", "status=failed", "q=usual", "workflowId=bulk&q=fifth"]],
  ] as const)("reads as many rows of the store for 5,000 runs of %s as for 300", async (_of, listOf, queries) => {
    const { fill, ask, after } = listOf();
    const costs = async () => {
      const found: object[] = [];
      for (const query of queries) {
        [read.statements, read.rows] = [0, 0];
        const page = await readPage((place, limit) => {
          const given = new URLSearchParams(query);
          given.set("limit", String(limit));
          if (place.after !== undefined) given.set(after, place.after);
          return ask(given);
        }, {});
        found.push({ query, shown: page.rows.length, ...read });
      }
      return found;
    };
    await fill(0, FEW);
    const ofFew = await costs();
    expect(ofFew[0]).toMatchObject({ shown: ROWS, rows: expect.toSatisfy((rows: number) => rows >= ROWS) });
    await fill(FEW, MANY);
    expect(await costs()).toEqual(ofFew);
  });
});
