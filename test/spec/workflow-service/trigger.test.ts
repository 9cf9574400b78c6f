import { describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const greet = {
  name: "Greet",
  description: "Says hello",
  creator: "Platform team",
  parameters: {
    type: "object",
    required: ["who"],
    properties: { who: { type: "string", minLength: 1 }, times: { type: "integer", default: 1 } },
    additionalProperties: false,
  },
  nodes: {
    hello: { type: "transform", with: { value: { text: "Hello ${{ parameters.who }}", times: "${{ parameters.times }}" } } },
  },
  outputs: { text: "${{ nodes.hello.output.text }}", times: "${{ nodes.hello.output.times }}" },
};
const free = { nodes: { a: { type: "transform", with: { value: 1 } } } };
const definitions = { "greet.json": greet, "free.json": free };

describe("the list of workflows (2.3, 4.2)", () => {
  it("has what the definitions say, and each one's last run", async () => {
    await using service = await startWorkflowService({ definitions });
    const listed = await service.call("GET", "/api/workflows");
    const summary = { name: "Greet", description: "Says hello", creator: "Platform team", nodeCount: 1, dslPath: "greet.json" };
    expect(listed).toMatchObject({ status: 200, body: { workflows: [{ id: "free" }, { id: "greet", ...summary }] } });
    expect(listed.body.workflows[1]).not.toHaveProperty("lastRun");
    const runId = await service.trigger("greet", { who: "Ada" });
    await service.ended("greet", runId);
    const { body } = await service.call("GET", "/api/workflows");
    expect(body.workflows[1].lastRun).toEqual({
      runId,
      status: "completed",
      taskBoardBound: false,
      completedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      totalDurationMs: expect.any(Number),
    });
  });

  it("leaves a definition out that cannot be parsed, and no other", async () => {
    await using service = await startWorkflowService({ definitions: { ...definitions, "broken.yaml": "nodes: [" } });
    const { body } = await service.call("GET", "/api/workflows");
    expect(body.workflows.map(({ id }: { id: string }) => id)).toEqual(["free", "greet"]);
    expect((await service.call("POST", "/api/workflow/webhook?id=broken", {})).status).toBe(404);
  });

  it("names the files that cannot be used, each with its first problems and how many there are", async () => {
    const many = "nodes:\n  a: { type: transfrom }\n  b: 1\n  c: 1\n  d: 1\n";
    await using service = await startWorkflowService({ definitions: { ...definitions, "support/many.yaml": many } });
    const { body } = await service.call("GET", "/api/workflows");
    expect(body.broken).toEqual([{ dslPath: "support/many.yaml", problemCount: 4, problems: expect.any(Array) }]);
    expect(body.broken[0].problems).toHaveLength(3);
    expect(body.broken[0].problems[0]).toEqual({ line: 2, column: 14, message: expect.stringContaining('"transfrom"') });
  });

  it("sees a definition that appears, changes or goes without a restart (open points 8)", async () => {
    await using service = await startWorkflowService({ definitions });
    service.deploy("new.json", { ...free, name: "New" });
    await expect
      .poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.map(({ id }: { id: string }) => id), {
        timeout: 30_000,
      })
      .toEqual(["free", "greet", "new"]);
  });
});

describe("a trigger (4.2)", () => {
  it("returns run, workflow and status started, and the run completes with its outputs", async () => {
    await using service = await startWorkflowService({ definitions });
    const answer = await service.call("POST", "/api/workflow/webhook?id=greet", { who: "Ada" });
    expect(answer).toMatchObject({ status: 200, body: { runId: expect.any(String), workflowId: "greet", status: "started" } });
    expect(Object.keys(answer.body).sort()).toEqual(["runId", "status", "workflowId"]);
    const detail = await service.ended("greet", answer.body.runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { text: "Hello Ada", times: 1 } });
  });

  it("takes an omitted body as an empty object", async () => {
    await using service = await startWorkflowService({ definitions });
    expect((await service.call("POST", "/api/workflow/webhook?id=free")).status).toBe(200);
    const declared = await service.call("POST", "/api/workflow/webhook?id=free", "", {
      headers: { "content-type": "application/json" },
    });
    expect(declared.status).toBe(200);
  });

  it("is not deduplicated: a repeated one is another run", async () => {
    await using service = await startWorkflowService({ definitions });
    const runs = [await service.trigger("free"), await service.trigger("free")];
    expect(new Set(runs).size).toBe(2);
  });

  it.each([
    ["without an id", "/api/workflow/webhook", {}, 400, "id query parameter is required"],
    ["with an empty id", "/api/workflow/webhook?id=", {}, 400, "id query parameter is required"],
    ["with two ids", "/api/workflow/webhook?id=free&id=greet", {}, 400, "id query parameter is required"],
    ["of no workflow", "/api/workflow/webhook?id=other", {}, 404, "Workflow not found"],
    ["of something that is no id", "/api/workflow/webhook?id=..%2Fgreet", {}, 404, "Workflow not found"],
    ["with a list as body", "/api/workflow/webhook?id=free", [1], 400, undefined],
    ["with a text as body", "/api/workflow/webhook?id=free", '"text"', 400, undefined],
    ["with no JSON", "/api/workflow/webhook?id=free", "{", 400, "Invalid JSON"],
  ])("%s is refused", async (_how, path, body, status, error) => {
    await using service = await startWorkflowService({ definitions });
    const answer = await service.call("POST", path, body);
    expect(answer.status).toBe(status);
    if (error !== undefined) expect(answer.body.error).toBe(error);
    expect((await service.call("GET", "/api/workflow/free/runs")).body).toEqual({ runs: [] });
  });

  it("415 for another media type, and 413 for more than one mebibyte", async () => {
    await using service = await startWorkflowService({ definitions });
    const text = await service.call("POST", "/api/workflow/webhook?id=free", "{}", { headers: { "content-type": "text/plain" } });
    const large = await service.call("POST", "/api/workflow/webhook?id=free", { text: "x".repeat(1024 * 1024) });
    expect([text.status, large.status]).toEqual([415, 413]);
  });

  it("whose parameters break the definition's schema is 400 with the places and without the values", async () => {
    await using service = await startWorkflowService({ definitions });
    const answer = await service.call("POST", "/api/workflow/webhook?id=greet", { times: "secretive", other: 1 });
    expect(answer.status).toBe(400);
    const paths = answer.body.details.parameters.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual(["/other", "/times", "/who"]);
    expect(JSON.stringify(answer.body)).not.toContain("secretive");
    expect((await service.call("GET", "/api/workflow/greet/runs")).body.runs).toEqual([]);
  });

  it("is checked in bounded time, for any pattern of the schema", async () => {
    const slow = { ...free, parameters: { type: "object", properties: { text: { type: "string", pattern: "^(a+)+$" } } } };
    await using service = await startWorkflowService({ definitions: { "slow.json": slow } });
    const answer = await service.call("POST", "/api/workflow/webhook?id=slow", { text: `${"a".repeat(10_000)}b` });
    expect(answer).toMatchObject({ status: 400, body: { details: { parameters: [{ path: "/text" }] } } });
    await service.trigger("slow", { text: "aaa" });
  });

  it("is durable before it is answered: another process on the same stores has the run", async () => {
    await using service = await startWorkflowService({
      definitions: { "hold.json": { nodes: { a: { type: "repeatable", with: { gate: "never" } } } } },
    });
    const runId = await service.trigger("hold");
    await using other = await startWorkflowService({ dataDir: service.dataDir });
    expect((await other.call("GET", "/api/workflow/hold/runs")).body.runs).toMatchObject([{ runId, status: "running" }]);
    await expect.poll(() => other.nodes.played).toMatchObject([{ runId, nodeId: "a" }]);
  });

  it("of a service that lost its work to another is 503 WORKFLOW_OWNER_FENCED, and nothing starts (7.2)", async () => {
    await using first = await startWorkflowService({ definitions });
    await using second = await startWorkflowService({ dataDir: first.dataDir });
    const fenced = await first.call("POST", "/api/workflow/webhook?id=free", {});
    expect(fenced).toMatchObject({ status: 503, body: { error: "WORKFLOW_OWNER_FENCED" } });
    expect((await second.call("GET", "/api/workflow/free/runs")).body.runs).toEqual([]);
    await second.trigger("free");
  });

  it("retired endpoints are 410 (9.4)", async () => {
    await using service = await startWorkflowService({ definitions });
    expect((await service.call("POST", "/api/workflows", {})).status).toBe(410);
    expect((await service.call("PUT", "/api/workflow/free", {})).status).toBe(410);
  });
});

describe("whole numbers beyond 2^53 - 1", () => {
  it("of a trigger keep their digits, as texts", async () => {
    const nodes = { a: { type: "transform", with: { value: "${{ parameters }}" } } };
    await using service = await startWorkflowService({
      definitions: { "echo.json": { nodes, outputs: { given: "${{ nodes.a.output }}" } } },
    });
    const body = '{"payment": 247868000247868102, "small": 12, "list": [-99999999999999999999]}';
    const triggered = await service.call("POST", "/api/workflow/webhook?id=echo", body, {
      headers: { "content-type": "application/json" },
    });
    const { finalOutputs } = await service.ended("echo", triggered.body.runId);
    expect(finalOutputs.given).toEqual({ payment: "247868000247868102", small: 12, list: ["-99999999999999999999"] });
  });

  it("are refused where the schema of the parameters wants a number", async () => {
    const parameters = { type: "object", properties: { payment: { type: "integer" } } };
    await using service = await startWorkflowService({ definitions: { "pay.json": { ...free, parameters } } });
    const headers = { "content-type": "application/json" };
    const refused = await service.call("POST", "/api/workflow/webhook?id=pay", '{"payment": 247868000247868102}', { headers });
    expect(refused.status).toBe(400);
  });
});
