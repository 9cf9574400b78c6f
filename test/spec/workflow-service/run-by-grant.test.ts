import { createManualClock } from "@portico/adapters/clock/manual";
import { describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const one = {
  parameters: { type: "object", properties: { n: { type: "integer" } } },
  nodes: { a: { type: "transform", with: { value: "${{ parameters }}" } } },
  outputs: { a: "${{ nodes.a.output }}" },
};
const definitions = { "one.json": one, "deep/two.json": one };

describe("starting a run by execution grant (4.2; open points 8)", () => {
  it("starts the workflow that the grant is for, on behalf of its user", async () => {
    await using service = await startWorkflowService({ definitions });
    const executionGrantId = await service.grant({ workflowId: "one", userId: "ada" });
    const answer = await service.call("POST", "/api/workflow/run", {
      executionGrantId,
      idempotencyKey: "k",
      workflowId: "one",
      parameters: { n: 1 },
    });
    expect(answer).toMatchObject({ status: 200, body: { workflowId: "one", status: "started" } });
    expect(answer.body).not.toHaveProperty("duplicate");
    expect(await service.ended("one", answer.body.runId)).toMatchObject({ finalOutputs: { a: { n: 1 } }, userId: "ada" });
  });

  it("takes the definition by its path in the folder", async () => {
    await using service = await startWorkflowService({ definitions });
    const executionGrantId = await service.grant({ workflowId: "two" });
    const answer = await service.call("POST", "/api/workflow/run", {
      executionGrantId,
      idempotencyKey: "k",
      definitionPath: "./deep/two.json",
    });
    expect(answer).toMatchObject({ status: 200, body: { workflowId: "two" } });
  });

  it.each(["/etc/passwd", "../one.json", "deep/../../one.json", "C:\\one.json", "deep\\..\\..\\one.json"])(
    "refuses the path %s with 403",
    async (definitionPath) => {
      await using service = await startWorkflowService({ definitions });
      const executionGrantId = await service.grant({ workflowId: "one" });
      const answer = await service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", definitionPath });
      expect([answer.status, answer.body.code]).toEqual([403, "definition_path_forbidden"]);
    },
  );

  it("the same key under one grant answers with the first run, also when asked at once, and after the grant's end", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions, clock });
    const executionGrantId = await service.grant({ workflowId: "one" });
    const ask = (idempotencyKey: string) =>
      service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey, workflowId: "one" });
    const answers = await Promise.all([ask("k"), ask("k"), ask("k"), ask("k")]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
    expect(answers.filter(({ body }) => body.duplicate === true)).toHaveLength(3);
    expect((await ask("other")).status).toBe(403);
    for (const other of [{ workflowId: "two" }, { workflowId: "missing" }, { definitionPath: "deep/two.json" }]) {
      const answer = await service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", ...other });
      expect([other, answer.status, answer.body.error?.code ?? answer.body.error]).toEqual([
        other,
        403,
        "execution_grant_invalid",
      ]);
    }
    await clock.jump(3_600_000);
    expect((await ask("k")).body).toMatchObject({ runId: answers[0]!.body.runId, duplicate: true });
    expect((await service.call("GET", "/api/workflow/one/runs")).body.runs).toHaveLength(1);
  });

  it("a day after the grant's end its key is forgotten, and starts nothing", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({ definitions, clock, engine: { leaseMs: 7_200_000 } });
    const executionGrantId = await service.grant({ workflowId: "one" });
    const ask = () => service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId: "one" });
    expect((await ask()).status).toBe(200);
    await clock.jump(24 * 3_600_000);
    expect((await ask()).body.duplicate).toBe(true);
    await clock.jump(3_600_000);
    const statusLater = async () => {
      // A sweep that was running before comes again an hour after its end.
      await clock.jump(3_600_000);
      return (await ask()).status;
    };
    await expect.poll(statusLater).toBe(403);
    expect((await service.call("GET", "/api/workflow/one/runs")).body.runs).toHaveLength(1);
  });

  it("is refused with 403 execution_grant_invalid without a grant that is good", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({
      definitions,
      clock,
      runtime: { bindings: [{ id: "b", workflowId: "two" }] },
    });
    const ask = (executionGrantId: string, workflowId = "one") =>
      service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId });
    const good = await service.grant({ workflowId: "one" });
    const expired = await service.grant({ workflowId: "one", ttlMs: 1000 });
    await clock.advance(1000);
    const foreignBinding = await service.grant({ workflowId: "one", bindingId: "b" });
    for (const answer of [
      await ask("nothing"),
      await ask("grant_"),
      await ask(`${good}x`),
      await ask(good.replace(".", ".A")),
      await ask(expired),
      await ask(good, "two"),
      await ask(foreignBinding),
    ])
      expect([answer.status, answer.body.error]).toEqual([403, "execution_grant_invalid"]);
    expect((await service.call("GET", "/api/workflow/one/runs")).body.runs).toEqual([]);
    // None of it has used it up.
    expect((await ask(good)).status).toBe(200);
  });

  it.each([
    ["no grant", { idempotencyKey: "k", workflowId: "one" }],
    ["no key", { executionGrantId: "g", workflowId: "one" }],
    ["an empty key", { executionGrantId: "g", idempotencyKey: "", workflowId: "one" }],
    ["no definition", { executionGrantId: "g", idempotencyKey: "k" }],
    ["two definitions", { executionGrantId: "g", idempotencyKey: "k", workflowId: "one", definitionPath: "one.json" }],
    ["a list of parameters", { executionGrantId: "g", idempotencyKey: "k", workflowId: "one", parameters: [] }],
    ["an unknown field", { executionGrantId: "g", idempotencyKey: "k", workflowId: "one", user: "root" }],
    ["no object", []],
  ])("with %s is 400", async (_what, body) => {
    await using service = await startWorkflowService({ definitions });
    expect((await service.call("POST", "/api/workflow/run", body)).status).toBe(400);
  });

  it("parameters that break the schema are 400, and the grant can still be used", async () => {
    await using service = await startWorkflowService({ definitions });
    const executionGrantId = await service.grant({ workflowId: "one" });
    const ask = (n: unknown) =>
      service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId: "one", parameters: { n } });
    expect(await ask("x")).toMatchObject({ status: 400, body: { code: "invalid_parameters" } });
    expect((await ask(1)).status).toBe(200);
  });

  it("a workflow that is not there is 404", async () => {
    await using service = await startWorkflowService({ definitions });
    const executionGrantId = await service.grant({ workflowId: "gone" });
    expect(
      (await service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey: "k", workflowId: "gone" })).status,
    ).toBe(404);
  });
});
