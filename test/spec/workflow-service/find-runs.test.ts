import { createManualClock } from "@portico/adapters/clock/manual";
import { ports, Secret } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunRecord } from "../../../plugins/src/workflow-service/runs/run-record.ts";
import { createRunRecords } from "../../../plugins/src/workflow-service/runs/run-records.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const SECRET = "configured-secret-4711";
const order = {
  parameters: {
    type: "object",
    properties: {
      order: {},
      customer: { type: "object", properties: { id: {} } },
      urgent: { type: "boolean", default: false },
      note: { type: "string" },
    },
  },
  search: { parameters: ["order", "customer.id", "urgent"], outputs: ["result", "count"] },
  nodes: { a: { type: "transform", with: { value: "${{ parameters.order }}" } } },
  outputs: { result: "done ${{ nodes.a.output }}", count: "${{ has(parameters.note) ? 2 : 1 }}" },
};
const definitions = {
  "order.json": order,
  "other.json": { ...order, nodes: { b: { type: "transform", with: { value: 1 } }, ...order.nodes } },
  "plain.json": { nodes: { a: { type: "transform", with: { value: 1 } } } },
  "failing.json": { nodes: { pay: { type: "fail", with: { message: "The quota of the galaxy is used up" } } } },
  "gated.json": { nodes: { ok: { type: "human_gate", with: { title: "Go on?" } } } },
  "bound.json": { nodes: { a: { type: "transform", with: { value: 1 } } } },
  "runs.json": { nodes: { a: { type: "transform", with: { value: 1 } } } },
  "bulk.json": { ...order, nodes: { c: { type: "transform", with: { value: 1 } }, ...order.nodes } },
};

let service: WorkflowService;
const query = (asked: Record<string, string> | readonly [string, string][]) =>
  new URLSearchParams(asked as Record<string, string>);
const search = (asked: Record<string, string> | readonly [string, string][] = {}, of = service) =>
  of.call("GET", `/api/workflow/runs/search?${query(asked)}`);
const ids = async (asked: Record<string, string> | readonly [string, string][], of = service): Promise<string[]> => {
  const { status, body } = await search(asked, of);
  expect([status, body.code]).toEqual([200, undefined]);
  return body.runs.map(({ runId }: { runId: string }) => runId);
};
const ended = async (workflowId: string, parameters?: object): Promise<string> => {
  const runId = await service.trigger(workflowId, parameters);
  await service.ended(workflowId, runId);
  return runId;
};
/** All pages, and how many there were. */
async function walk(asked: Record<string, string>): Promise<{ readonly found: string[]; readonly pages: number }> {
  const found: string[] = [];
  for (let cursor: string | undefined, pages = 1; ; pages++) {
    const { body } = await search({ ...asked, ...(cursor !== undefined && { cursor }) });
    found.push(...body.runs.map(({ runId }: { runId: string }) => runId));
    cursor = body.next;
    if (cursor === undefined) return { found, pages };
  }
}
const tagsOf = async (of: WorkflowService, runId: string): Promise<string[]> => {
  const tags = of.app.port(ports.records).collection<object>({
    name: "workflow-run-tags",
    indexes: { byTag: ["tag", "at"], byOwner: ["owner", "tag", "at"] },
  });
  const found: string[] = [];
  for (let after: string | undefined; ;) {
    const page: ports.Page<object> = await tags.query({ limit: 1000, ...(after !== undefined && { after }) });
    found.push(...page.items.map(({ id }) => id).filter((id) => id.endsWith(` ${runId}`)));
    if (page.next === undefined) return found;
    after = page.next;
  }
};

/** Stored as the service stores runs: two of 700 are rare in each way. */
const bulk = Array.from({ length: 700 }, (_, at): RunRecord => {
  const error = { code: "quota", message: `Common words ${at % 350 === 11 ? "seldom" : "always"}` };
  return {
    ...{ runId: `wrun_bulk${String(at).padStart(4, "0")}`, workflowId: "bulk", name: "bulk", instance: "i" },
    ...{ definition: (at < 650 ? "a" : "b").repeat(64), nodeCount: 1, completedNodeCount: 0 },
    status: at % 350 === 9 ? "interrupted" : "failed",
    // Two begin at the same time.
    startedAt: new Date(Date.UTC(2020, 0, 1, 0, at - (at % 2))).toISOString(),
    completedAt: new Date(Date.UTC(2020, 0, 2)).toISOString(),
    error,
    fields: { parameters: { order: at % 350 === 13 ? "rare" : "usual" } },
  };
});
const bulkIds = (wanted: (run: RunRecord) => boolean) =>
  bulk
    .filter(wanted)
    .map(({ runId }) => runId)
    .reverse();

beforeAll(async () => {
  const bindings = [
    { id: "mine", workflowId: "bound", boardId: "B", readers: ["owner"] },
    { id: "theirs", workflowId: "bound", boardId: "B", readers: ["other"] },
  ];
  service = await startWorkflowService({
    definitions,
    runtime: { bindings, secrets: { KEY: new Secret(SECRET) } },
  });
  const records = service.app.port(ports.records);
  const runs = createRunRecords(records);
  for (let at = 0; at < bulk.length; at += 100) await records.batch(bulk.slice(at, at + 100).flatMap((run) => runs.begin(run)));
});
afterAll(() => service.close());

describe("GET /api/workflow/runs/search", () => {
  it("finds runs of all workflows or of one, newest first, with their fields and version", async () => {
    const one = await ended("order", { order: "A-1", customer: { id: 17 } });
    const two = await ended("other", { order: "A-2", customer: { id: 17 } });
    expect(await ids({ limit: "2" })).toEqual([two, one]);
    expect(await ids({ workflowId: "order" })).toEqual([one]);
    const { body } = await search({ workflowId: "order" });
    expect(body).toEqual({
      runs: [
        {
          ...{ runId: one, workflowId: "order", status: "completed", nodeCount: 1, completedNodeCount: 1, taskBoardBound: false },
          ...{ startedAt: expect.any(String), completedAt: expect.any(String), totalDurationMs: expect.any(Number) },
          version: expect.stringMatching(/^[0-9a-f]{64}$/),
          fields: {
            parameters: { order: "A-1", "customer.id": "17", urgent: "false" },
            outputs: { result: "done A-1", count: "1" },
          },
        },
      ],
    });
    expect(await ids({ parameter: "customer.id=17" })).toEqual([two, one]);
  });

  it("finds runs by values of declared parameters and outputs: texts, numbers, booleans, and defaults", async () => {
    const run = await ended("order", { order: "Größe 4 = groß", customer: { id: "c 1" }, urgent: true, note: "x" });
    for (const parameter of ["order=Größe 4 = groß", "customer.id=c 1", "urgent=true"])
      expect(await ids({ workflowId: "order", parameter })).toEqual([run]);
    expect(await ids({ workflowId: "order", output: "count=2" })).toEqual([run]);
    expect(await ids({ workflowId: "order", output: "result=done Größe 4 = groß", parameter: "urgent=true" })).toEqual([run]);
    expect(
      await ids([
        ["workflowId", "order"],
        ["parameter", "urgent=true"],
        ["parameter", "customer.id=c 1"],
      ]),
    ).toEqual([run]);
    expect(await ids({ workflowId: "order", parameter: "order=größe 4 = groß" })).toEqual([]);
    expect(await ids({ workflowId: "order", output: "count=2", parameter: "urgent=false" })).toEqual([]);
  });

  it("does not find long texts, lists and missing values", async () => {
    const [long, list, none] = ["x".repeat(201), ["a"], undefined];
    for (const value of [long, list, none]) {
      const run = await ended("order", { order: value });
      const found = (await search({ workflowId: "order", limit: "1" })).body.runs[0];
      expect([found.runId, found.fields.parameters]).toEqual([run, { urgent: "false" }]);
    }
    const run = await ended("order", { order: "y".repeat(200) });
    expect(await ids({ parameter: `order=${"y".repeat(200)}` })).toEqual([run]);
  });

  it("never finds or shows a run by a secret value", async () => {
    const run = await ended("order", { order: `key ${SECRET}` });
    const { body } = await search({ workflowId: "order", limit: "1" });
    expect([body.runs[0].runId, body.runs[0].fields.parameters]).toEqual([run, { urgent: "false" }]);
    // The output was made of it.
    expect(body.runs[0].fields.outputs).toEqual({ count: "1" });
    for (const asked of [
      ["parameter", `order=key ${SECRET}`],
      ["parameter", "order=key ***"],
      ["output", "result=done key ***"],
    ] as const)
      expect(await ids({ workflowId: "order", [asked[0]]: asked[1] })).toEqual([]);
  });

  it("finds runs by words of their errors, in any order and case", async () => {
    const run = await ended("failing");
    expect(await ids({ q: "GALAXY quota" })).toEqual([run]);
    expect(await ids({ q: "pay", workflowId: "failing", status: "failed" })).toEqual([run]);
    expect(await ids({ q: "gal" })).toEqual([]);
    expect(await ids({ q: "galaxy", workflowId: "plain" })).toEqual([]);
  });

  it("finds runs by their status as it is now", async () => {
    const run = await service.trigger("gated");
    await service.until("gated", run, ({ status }) => status === "waiting_human");
    expect(await ids({ status: "waiting_human" })).toEqual([run]);
    expect(await ids({ status: "running" })).toEqual([]);
    expect(await ids({ workflowId: "gated", status: "completed" })).toEqual([]);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "gated" }) };
    await service.call("POST", `/api/workflow/gated/runs/${run}/cancel`, undefined, { headers });
    await service.ended("gated", run);
    expect(await ids({ status: "waiting_human" })).toEqual([]);
    expect(await ids({ status: "cancelled", workflowId: "gated" })).toEqual([run]);
    expect(await tagsOf(service, run)).not.toContain(`s:open ${run}`);
  });

  it("takes all filters at once, and pages through everything once", async () => {
    const workflowId = "bulk";
    expect((await walk({ workflowId, status: "interrupted" })).found).toEqual(bulkIds(({ status }) => status === "interrupted"));
    expect((await walk({ workflowId, q: "seldom common" })).found).toEqual(
      bulkIds(({ error }) => error!.message.includes("seldom")),
    );
    expect((await walk({ workflowId, parameter: "order=rare" })).found).toEqual(
      bulkIds(({ fields }) => fields!.parameters!["order"] === "rare"),
    );
    const times = { startedFrom: "2020-01-01T01:00Z", startedBefore: "2020-01-01T03:06:00+01:00" };
    expect((await walk({ workflowId, ...times })).found).toEqual(bulkIds(() => true).slice(-126, -60));
    expect((await walk({ workflowId, ...times, q: "always", status: "failed", parameter: "order=usual" })).found).toHaveLength(
      66,
    );
    expect((await walk({ workflowId, startedBefore: "2020-01-01" })).found).toEqual([]);
    for (const limit of ["7", "200"]) expect((await walk({ workflowId, limit })).found).toEqual(bulkIds(() => true));
  });

  it("finds the runs of a version, also behind many of another", async () => {
    const workflowId = "bulk";
    const versions = ["a", "b"].map((letter) => letter.repeat(64));
    for (const version of versions)
      expect((await walk({ workflowId, version })).found).toEqual(bulkIds(({ definition }) => definition === version));
    const { body } = await search({ workflowId, version: versions[0]!, limit: "1" });
    expect(body.runs).toMatchObject([{ runId: "wrun_bulk0649", version: versions[0] }]);
    expect((await search({ workflowId, version: "c".repeat(64) })).body).toEqual({ runs: [] });
  });

  it("finds a run of a workflow and a version in one call, behind many runs of another workflow with this version", async () => {
    const records = service.app.port(ports.records);
    const [older] = bulk;
    const run = { ...older!, runId: "wrun_aaaa", workflowId: "plain", startedAt: "2019-12-31T00:00:00.000Z" };
    await records.batch(createRunRecords(records).begin(run));
    const { body } = await search({ workflowId: "plain", version: "a".repeat(64), limit: "1" });
    expect(body.runs).toMatchObject([{ runId: "wrun_aaaa" }]);
  });

  it("pages back to the newest, each run once, also with runs that begin meanwhile", async () => {
    const asked = { workflowId: "bulk", q: "always", limit: "90", startedFrom: "2020-01-01T01:00Z" };
    const wanted = bulkIds(({ startedAt, error }) => startedAt >= "2020-01-01T01:00" && error!.message.includes("always"));
    const pages = [(await search(asked)).body];
    expect(pages[0]).not.toHaveProperty("previous");
    while (pages.at(-1).next) pages.push((await search({ ...asked, cursor: pages.at(-1).next })).body);
    const shown = pages.map(({ runs }) => runs.map(({ runId }: { runId: string }) => runId));
    expect(shown.flat()).toEqual(wanted);
    const back = [shown.at(-1)];
    let before: string | undefined = pages.at(-1).previous;
    const added: RunRecord = { ...bulk[0]!, runId: "wrun_bulk_later", startedAt: "2020-01-02T00:00:00.000Z" };
    const runs = createRunRecords(service.app.port(ports.records));
    await service.app.port(ports.records).batch(runs.begin(added));
    while (before) {
      const { body } = await search({ ...asked, before });
      expect(body.next).toEqual(expect.any(String));
      back.unshift(body.runs.map(({ runId }: { runId: string }) => runId));
      before = body.previous;
    }
    expect(back.flat()).toEqual([added.runId, ...wanted]);
    await runs.remove([added]);
  });

  it("finds the runs of a user", async () => {
    const runs = createRunRecords(service.app.port(ports.records));
    const own = { workflowId: "plain", startedAt: new Date().toISOString() };
    const added = ["ann", "bob"].map((userId): RunRecord => ({ ...bulk[0]!, ...own, runId: `wrun_of_${userId}`, userId }));
    await service.app.port(ports.records).batch(added.flatMap((run) => runs.begin(run)));
    expect(await ids({ userId: "ann" })).toEqual(["wrun_of_ann"]);
    expect(await ids({ userId: "bob", workflowId: "plain", status: "failed" })).toEqual(["wrun_of_bob"]);
    expect(await ids({ userId: "ann", workflowId: "bulk" })).toEqual([]);
    await runs.remove(added);
  });

  it("looks at a bounded number of runs per call: a page may be empty and yet have a next one", async () => {
    const asked = { workflowId: "bulk", status: "completed" };
    const first = (await search(asked)).body;
    expect([first.runs, first.next]).toEqual([[], expect.any(String)]);
    const { found, pages } = await walk(asked);
    expect([found, pages]).toEqual([[], 11]);
  });

  it("shows runs of a binding only to its readers, as lists do (4.2)", async () => {
    const start = async (bindingId: string) => {
      const executionGrantId = await service.grant({ workflowId: "bound", bindingId });
      const body = { executionGrantId, idempotencyKey: "1", workflowId: "bound" };
      const { runId } = (await service.call("POST", "/api/workflow/run", body)).body;
      await expect.poll(async () => (await service.app.port(workflowRuntime).runs.find(runId))?.value.status).toBe("completed");
      return runId as string;
    };
    const [mine, theirs] = [await start("mine"), await start("theirs")];
    expect(await ids({ workflowId: "bound" })).toEqual([mine]);
    expect(await ids({ limit: "200", startedFrom: "2021-01-01" })).not.toContain(theirs);
    expect((await search({ workflowId: "bound" })).body.runs[0]).toMatchObject({ workflowBindingId: "mine", boardId: "B" });
  });

  it("names no run in a cursor: a page may end at one that the caller may not read", async () => {
    const { body } = await search({ workflowId: "bulk", limit: "1" });
    const [runId] = body.runs.map((run: { runId: string }) => run.runId);
    const readable = body.next.split(".").map((part: string) => Buffer.from(part, "base64url").toString("latin1"));
    expect([body.next, ...readable].filter((text) => text.includes(runId))).toEqual([]);
    expect((await search({ workflowId: "bulk", limit: "1", cursor: body.next })).body.runs[0].runId).not.toBe(runId);
  });

  it("finds runs by the code and the node of their error, and by when they ended", async () => {
    const run = await ended("failing");
    const { body } = await search({ workflowId: "failing" });
    const { error, completedAt } = body.runs[0];
    expect(await ids({ workflowId: "failing", error: error.code, node: "pay" })).toContain(run);
    expect(await ids({ error: error.code, node: "elsewhere" })).toEqual([]);
    expect(await ids({ workflowId: "failing", error: "other_code" })).toEqual([]);
    expect(await ids({ workflowId: "failing", endedFrom: completedAt })).toEqual([run]);
    const after = new Date(Date.parse(completedAt) + 1).toISOString();
    expect(await ids({ workflowId: "failing", endedFrom: after })).toEqual([]);
    const counted = await service.call(
      "GET",
      `/api/workflow/runs/counts?${query({ workflowId: "failing", endedFrom: completedAt })}`,
    );
    expect(counted.body).toEqual({
      ...{ total: 1, complete: true, statuses: { failed: 1 }, leftOut: 0 },
      groups: [
        {
          ...{ workflowId: "failing", status: "failed", error: error.code, nodeId: "pay", count: 1 },
          newest: { runId: run, at: completedAt, message: "The quota of the galaxy is used up" },
        },
      ],
    });
  });

  it("counts only runs that the caller may read, and asks of a count what it asks of a search", async () => {
    const counts = (asked: Record<string, string>, token?: string) =>
      service.call("GET", `/api/workflow/runs/counts?${query(asked)}`, undefined, token === undefined ? {} : { token });
    expect((await counts({ workflowId: "bulk" })).body).toMatchObject({
      ...{ total: 700, complete: true, statuses: { failed: 698, interrupted: 2 } },
      groups: [
        { status: "failed", error: "quota", count: 698 },
        { status: "interrupted", count: 2 },
      ],
    });
    const bound = (await counts({ workflowId: "bound" })).body;
    expect(bound.total).toBe((await ids({ workflowId: "bound", limit: "200" })).length);
    expect((await counts({}, "")).status).toBe(401);
    expect((await counts({ limit: "1" })).status).toBe(400);
    expect((await counts({ workflowId: "gone" })).body.code).toBe("workflow_not_found");
  });

  it("needs the service token, and has no effect on a workflow that is called runs", async () => {
    expect((await service.call("GET", "/api/workflow/runs/search", undefined, { token: "" })).status).toBe(401);
    const run = await ended("runs");
    expect((await service.call("GET", "/api/workflow/runs/runs")).body.runs).toMatchObject([{ runId: run }]);
    expect((await service.call("GET", "/api/workflow/runs/definition")).body).toMatchObject({ id: "runs" });
  });

  it("a cursor belongs to its search", async () => {
    const asked = { workflowId: "bulk", q: "common", parameter: "order=usual", limit: "1" };
    const cursor: string = (await search(asked)).body.next;
    expect((await search({ ...asked, q: "COMMON", limit: "5", cursor })).status).toBe(200);
    for (const other of [
      { ...asked, q: "words", cursor },
      { ...asked, status: "failed", cursor },
      { ...asked, parameter: "order=rare", cursor },
      { q: "common", cursor },
      { ...asked, cursor: "" },
      { ...asked, q: "words", before: cursor },
      { ...asked, cursor, before: cursor },
      { ...asked, cursor: `${cursor}A` },
      { ...asked, cursor: Buffer.from('["a","b","c"]').toString("base64url") },
    ] as Record<string, string>[])
      expect(await search(other)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  });

  it.each<Record<string, string>>([
    { q: "" },
    { q: "…!?" },
    { q: "a b c d e f g h i" },
    { q: "x".repeat(201) },
    { status: "done" },
    { status: "toString" },
    { workflowId: "" },
    { startedFrom: "yesterday" },
    { startedFrom: "2030-02-30" },
    { startedBefore: "2020-01-01T00:00:00" },
    { startedBefore: "2020-13-01" },
    { workflowId: "bulk", version: "new" },
    { limit: "0" },
    { limit: "201" },
    { limit: "1.5" },
    { parameter: "order" },
    { parameter: "=x" },
    { workflowId: "order", parameter: "note=x" },
    { workflowId: "plain", output: "result=x" },
    { error: "not a code" },
    { node: "" },
    { endedFrom: "lately" },
    { unknown: "x" },
  ])("400 invalid_request for %j, which must not show everything", async (asked) => {
    expect(await search(asked)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  });

  it("400 for a filter that is given twice, and 404 for an unknown workflow", async () => {
    for (const twice of ["q=a&q=b", "status=failed&status=failed", "parameter=order%3Da&parameter=order%3Db"])
      expect((await service.call("GET", `/api/workflow/runs/search?${twice}`)).status).toBe(400);
    expect(await search({ workflowId: "gone" })).toMatchObject({ status: 404, body: { code: "workflow_not_found" } });
  });
});

describe("the fields that a definition declares", () => {
  it("are shown with it", async () => {
    const { body } = await service.call("GET", "/api/workflow/order/definition");
    expect(body.search).toEqual(order.search);
    expect((await service.call("GET", "/api/workflow/plain/definition")).body).not.toHaveProperty("search");
  });
});

describe("removed runs", () => {
  it("leave no tag behind", async () => {
    const clock = createManualClock();
    await using own = await startWorkflowService({ definitions, clock, runtime: { keepRuns: "1h" } });
    const runId = await own.trigger("order", { order: "A-1" });
    await own.ended("order", runId);
    expect(await tagsOf(own, runId)).toHaveLength(4);
    await clock.jump(2 * 3_600_000);
    const left = async () => {
      await own.app.port(workflowRuntime).sweep(new AbortController().signal);
      return tagsOf(own, runId);
    };
    await expect.poll(left).toEqual([]);
  });
});
