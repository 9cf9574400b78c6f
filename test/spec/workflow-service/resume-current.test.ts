import { httpNode } from "@portico/workflow-nodes/http";
import { describe, expect, it } from "vitest";
import { startHookServer } from "../../harness/hook-server.ts";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const say = (said: unknown, more: object = {}) => ({ type: "scripted", with: { say: said }, ...more });
const broken = (more: object = {}) => ({ type: "fail", with: { message: "Not yet" }, ...more });

/** A failed run of `w`, whose definition then changes. */
async function failedRun(before: object, after: object, options: WorkflowServiceOptions & { readonly parameters?: object } = {}) {
  const { parameters, ...more } = options;
  const service = await startWorkflowService({ ...more, definitions: { "w.json": before, ...more.definitions } });
  const runId = await service.trigger("w", parameters);
  expect((await service.ended("w", runId)).status).toBe("failed");
  await deployed(service, "w", after);
  const played = service.nodes.played.length;
  return {
    ...{ service, runId },
    /** Ids of the nodes that were executed since. */
    played: () => service.nodes.played.slice(played).map(({ nodeId }) => nodeId),
    plan: async (query = "definition=current") => service.call("GET", `/api/workflow/w/runs/${runId}/resume-plan?${query}`),
    [Symbol.asyncDispose]: () => service.close(),
  };
}

/** Deploys a definition, and waits until the service uses it. */
async function deployed(service: WorkflowService, id: string, definition: object): Promise<void> {
  const name = JSON.stringify(definition);
  service.deploy(`${id}.json`, { name: "changed", ...definition, description: String(name.length) });
  await expect
    .poll(async () => (await service.call("GET", `/api/workflow/${id}/definition`)).body.description)
    .toBe(String(name.length));
}

async function resume(service: WorkflowService, runId: string, body: object = {}) {
  const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
  const sent = { idempotencyKey: "k", definition: "current", ...body };
  return service.call("POST", `/api/workflow/w/runs/${runId}/resume`, sent, { headers });
}

async function resumed(service: WorkflowService, runId: string, body: object = {}) {
  const answer = await resume(service, runId, body);
  expect([answer.status, answer.body.resumes]).toEqual([200, runId]);
  return service.ended("w", answer.body.runId);
}

const before = {
  nodes: {
    a: say("a"),
    b: say("b", { needs: ["a"] }),
    c: say("c"),
    gone: say("gone"),
    stop: broken({ needs: ["b", "c", "gone"] }),
  },
};
const after = {
  nodes: {
    a: say("a", { name: "First", retry: { attempts: 3 }, timeout: "1h", idempotent: true }),
    b: say("B", { needs: ["a"] }),
    c: say("c"),
    d: say("${{ nodes.b.output + nodes.c.output }}", { needs: ["b", "c"] }),
    stop: say("${{ nodes.d.output }}", { needs: ["d"] }),
  },
  outputs: { all: "${{ nodes.stop.output }}" },
};

describe("resuming a run with the present definition", () => {
  it("keeps the results of nodes that are the same, and executes changed and added nodes", async () => {
    await using run = await failedRun(before, after);
    const detail = await resumed(run.service, run.runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { all: "Bc" }, resumes: run.runId });
    expect(run.played()).toEqual(["b", "d", "stop"]);
    expect(Object.keys(detail.nodeResults).sort()).toEqual(["a", "b", "c", "d", "stop"]);
    expect(detail.nodeResults).toMatchObject({ a: { reused: true }, c: { reused: true } });
  });

  it("shows before what it would keep and repeat, and what has changed, and starts nothing", async () => {
    await using run = await failedRun(before, after);
    const { status, body } = await run.plan();
    expect([status, body]).toEqual([
      200,
      {
        ...{ version: expect.stringMatching(/^[0-9a-f]{64}$/), kept: ["a", "c"], repeated: ["b", "stop"] },
        ...{ changed: ["b", "stop"], added: ["d"], removed: ["gone"] },
      },
    ]);
    const own = (await run.plan("")).body;
    expect(own).toMatchObject({ kept: ["a", "c", "gone", "b"].sort(), repeated: ["stop"], changed: [], added: [], removed: [] });
    expect(own.version).not.toBe(body.version);
    expect((await run.service.call("GET", "/api/workflow/w/runs")).body.runs).toHaveLength(1);
    expect((await run.plan("definition=newest")).status).toBe(400);
    expect((await run.plan("definition=current&from=a")).body).toMatchObject({ kept: ["c"], repeated: ["a", "b", "stop"] });
  });

  it("repeats the nodes that depend on a changed node, also if they are the same", async () => {
    const chain = (first: string, last: object) => ({
      nodes: {
        a: say(first),
        b: say("${{ nodes.a.output }}!", { needs: ["a"] }),
        x: say("x"),
        last: { ...last, needs: ["b", "x"] },
      },
      outputs: { b: "${{ nodes.b.output }}" },
    });
    await using run = await failedRun(chain("old", broken()), chain("new", say("end")));
    expect((await run.plan()).body).toMatchObject({ kept: ["x"], changed: ["a", "last"], repeated: ["a", "b", "last"] });
    expect((await resumed(run.service, run.runId)).finalOutputs).toEqual({ b: "new!" });
    expect(run.played()).toEqual(["a", "b", "last"]);
  });

  it("compares the order of the cases of a branch, and not the order of the keys of a node", async () => {
    const branched = (cases: object, isTurned: boolean, last: object) => {
      const node = { type: "branch", with: { cases, else: "other" } };
      const turned = { with: node.with, type: node.type };
      return { nodes: { pick: isTurned ? turned : node, last: { ...last, needs: ["pick"] } } };
    };
    const [one, two] = [
      { a: "true", b: "true" },
      { b: "true", a: "true" },
    ];
    await using run = await failedRun(branched(one, false, broken()), branched(one, true, say("end")));
    expect((await run.plan()).body).toMatchObject({ kept: ["pick"], changed: ["last"] });
    await deployed(run.service, "w", { ...branched(two, false, say("end")), creator: "Another" });
    expect((await run.plan()).body).toMatchObject({ kept: [], changed: ["pick", "last"] });
  });

  it("keeps finished elements of a map that is the same, and repeats all of a map that has changed", async () => {
    const mapped = (inner: object, last: object) => ({
      nodes: {
        same: { type: "map", with: { items: [1, 2], nodes: { n: say("${{ item }}") }, result: "${{ nodes.n.output }}" } },
        other: { type: "map", with: { items: [1, 2], nodes: { n: inner }, result: "${{ nodes.n.output }}" } },
        last: { ...last, needs: ["same", "other"] },
      },
      outputs: { all: "${{ nodes.same.output + nodes.other.output }}" },
    });
    const definition = mapped(say("x", { name: "Named", retry: { attempts: 2 } }), say("end"));
    await using run = await failedRun(mapped(say("x"), broken()), definition);
    expect((await run.plan()).body).toMatchObject({ kept: ["same", "other"] });
    await deployed(run.service, "w", mapped(say("y"), say("end")));
    expect((await run.plan()).body).toMatchObject({ kept: ["same"], changed: ["other", "last"] });
    expect((await resumed(run.service, run.runId)).finalOutputs).toEqual({ all: [1, 2, "y", "y"] });
    expect(run.played().sort()).toEqual(["last", "other[0].n", "other[1].n"]);
  });

  it("checks the parameters of the run against the present schema, and starts nothing if they do not match", async () => {
    const properties = { n: { type: "integer" } };
    const strict = { ...after, parameters: { type: "object", required: ["who"], properties } };
    await using run = await failedRun(before, strict, { parameters: { n: 1 } });
    for (const answer of [await resume(run.service, run.runId), await run.plan()])
      expect([answer.status, answer.body.code, answer.body.details.parameters[0].path]).toEqual([
        400,
        "invalid_parameters",
        "/who",
      ]);
    expect((await run.service.detail("w", run.runId)).resumable).toBe(true);
  });

  it("repeats the nodes that read a parameter to which the present schema gives another value or makes it secret", async () => {
    const nodes = (last: object) => ({
      n: say("${{ parameters.n }}"),
      who: say("${{ has(parameters.who) ? parameters.who : 'none' }}"),
      key: say("${{ parameters.key }}"),
      all: say("${{ size(parameters) }}"),
      last: { ...last, needs: ["n", "who", "key", "all"] },
    });
    const old = { parameters: { type: "object", properties: { key: { type: "string" } } }, nodes: nodes(broken()) };
    const now = {
      parameters: {
        type: "object",
        properties: { who: { type: "string", default: "Ada" }, key: { type: "string", writeOnly: true } },
      },
      nodes: nodes(say("end")),
      outputs: { who: "${{ nodes.who.output }}" },
    };
    await using run = await failedRun(old, now, { parameters: { n: 1, key: "a-secret-key" } });
    expect((await run.plan()).body).toMatchObject({ kept: ["n"], changed: ["who", "key", "all", "last"] });
    const detail = await resumed(run.service, run.runId);
    expect(detail).toMatchObject({ finalOutputs: { who: "Ada" }, parameters: { n: 1, who: "Ada", key: "***" } });
    expect(JSON.stringify(detail)).not.toContain("a-secret-key");
  });

  it("finds the new run by the fields that the present definition declares, and counts it for the present version", async () => {
    const parameters = { type: "object", properties: { order: { type: "string" } } };
    const found = { ...after, parameters, search: { parameters: ["order"] } };
    await using run = await failedRun({ ...before, parameters }, found, { parameters: { order: "o-1" } });
    const { runId } = await resumed(run.service, run.runId);
    const { body } = await run.service.call("GET", "/api/workflow/runs/search?workflowId=w&parameter=order%3Do-1");
    expect(body.runs.map((each: { runId: string }) => each.runId)).toEqual([runId]);
    const { versions } = (await run.service.call("GET", "/api/workflow/w/versions")).body;
    const present = versions.find((each: { isDeployed: boolean }) => each.isDeployed);
    expect([present.version, present.runCount]).toEqual([body.runs[0].version, 1]);
  });

  it("sends new idempotency keys for nodes that differ, and the first run's for the others, also in later resumes", async () => {
    await using hook = await startHookServer();
    hook.status = 404;
    const call = (body: string) => ({ type: "http", with: { method: "POST", url: hook.url, key: true, body } });
    const options = { adapters: [httpNode({ allow: [hook.host] })] };
    await using run = await failedRun({ nodes: { call: call("old") } }, { nodes: { call: call("new") } }, options);
    const second = await resumed(run.service, run.runId);
    const third = await resumed(run.service, second.runId);
    expect((await resumed(run.service, third.runId, { definition: "own" })).status).toBe("failed");
    const keys = hook.received.map(({ headers, body }) => [headers["idempotency-key"], body]);
    expect(keys.map(([key]) => key)).toEqual([run.runId, second.runId, second.runId, second.runId].map((id) => `${id}:call:1`));
  });

  it("resumes the runs of its `workflow` nodes with the present definitions, too", async () => {
    const child = (last: object) => ({
      nodes: { x: say("x"), y: { ...last, needs: ["x"] } },
      outputs: { y: "${{ nodes.x.output + nodes.y.output }}" },
    });
    const main = { nodes: { s: { type: "workflow", with: { workflow: "c" } } }, outputs: { s: "${{ nodes.s.output.y }}" } };
    await using run = await failedRun(main, main, { definitions: { "c.json": child(broken()) } });
    await deployed(run.service, "c", child(say("y")));
    expect(await resumed(run.service, run.runId)).toMatchObject({ status: "completed", finalOutputs: { s: "xy" } });
    expect(run.played()).toEqual(["y"]);
  });

  it("starts nothing if the definition is another one than that of the plan", async () => {
    await using run = await failedRun(before, after);
    const { version } = (await run.plan()).body;
    const own = (await run.plan("")).body.version;
    await deployed(run.service, "w", { ...after, outputs: { all: "another" } });
    for (const body of [{ version }, { version: own }, { version, definition: "own" }]) {
      const answer = await resume(run.service, run.runId, body);
      expect([answer.status, answer.body.code]).toEqual([409, "resume_plan_outdated"]);
    }
    expect((await run.service.detail("w", run.runId)).resumable).toBe(true);
    const present = (await run.plan()).body.version;
    expect((await resumed(run.service, run.runId, { version: present })).finalOutputs).toEqual({ all: "another" });
  });

  it("executes nodes anew whose type has changed, also from or to a map, and nodes that were renamed", async () => {
    const mapped = (more: object = {}) => ({
      ...{ type: "map", with: { items: [1, 2], nodes: { n: say("${{ item }}") }, result: "${{ nodes.n.output }}" } },
      ...more,
    });
    const nodes = (one: object, other: object, name: string, last: object) => ({
      nodes: { one, other, [name]: say("named"), last: { ...last, needs: ["one", "other", name] } },
      outputs: { all: "${{ [nodes.one.output, nodes.other.output] }}" },
    });
    await using run = await failedRun(
      nodes(mapped(), say("plain"), "before", broken()),
      nodes(say("plain"), mapped(), "after", say("end")),
    );
    expect((await run.plan()).body).toMatchObject({
      kept: [],
      added: ["after"],
      removed: ["before"],
      repeated: ["one", "other", "last"],
    });
    for (const from of ["one[0].n", "before"]) {
      const answer = await resume(run.service, run.runId, { from, as: "done" });
      expect([answer.status, answer.body.code]).toEqual([409, "run_not_resumable"]);
    }
    const detail = await resumed(run.service, run.runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { all: ["plain", [1, 2]] } });
    expect(Object.keys(detail.nodeResults).sort()).toEqual(["after", "last", "one", "other", "other[0].n", "other[1].n"]);
  });

  it("lets a changed node count as done", async () => {
    await using run = await failedRun(before, after);
    expect((await run.plan("definition=current&from=stop&as=done")).body).toMatchObject({ done: "stop", repeated: ["b"] });
    const detail = await resumed(run.service, run.runId, { from: "stop", as: "done", output: "by hand" });
    expect(detail.finalOutputs).toEqual({ all: "by hand" });
    expect(run.played()).toEqual(["b", "d"]);
  });

  it("resumes a run whose own definition can no longer be used", async () => {
    await using hook = await startHookServer();
    hook.status = 404;
    const old = { nodes: { a: say("a"), b: { type: "http", needs: ["a"], with: { url: hook.url } } } };
    const adapters = [httpNode({ allow: [hook.host] })];
    const first = await startWorkflowService({ definitions: { "w.json": old }, adapters });
    const runId = await first.trigger("w");
    expect((await first.ended("w", runId)).status).toBe("failed");
    await using service = await startWorkflowService({ dataDir: first.dataDir });
    await deployed(service, "w", {
      nodes: { a: say("a"), b: say("b", { needs: ["a"] }) },
      outputs: { b: "${{ nodes.a.output + nodes.b.output }}" },
    });
    expect((await resume(service, runId, { definition: "own" })).body.code).toBe("run_not_resumable");
    expect((await resumed(service, runId)).finalOutputs).toEqual({ b: "ab" });
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["b"]);
    await first.close().catch(() => {});
  });

  it("has no plan for a run that cannot be resumed, and for an unknown run", async () => {
    await using run = await failedRun(before, after);
    const ended = await resumed(run.service, run.runId);
    const plan = await run.service.call("GET", `/api/workflow/w/runs/${ended.runId}/resume-plan?definition=current`);
    expect([plan.status, plan.body.code]).toEqual([409, "run_not_resumable"]);
    expect((await run.service.call("GET", "/api/workflow/w/runs/wrun_0/resume-plan")).status).toBe(404);
  });

  it("starts one run for one key, also of several calls at the same time, and goes on in another process", async () => {
    const held = {
      ...after.nodes,
      d: say("${{ nodes.b.output }}", { needs: ["b"], type: "repeatable", with: { gate: "held" } }),
    };
    await using run = await failedRun(before, { ...after, nodes: held });
    const answers = await Promise.all([1, 2, 3].map(() => resume(run.service, run.runId)));
    const ids = new Set(answers.map(({ body }) => body.runId));
    expect([ids.size, answers.map(({ status }) => status)]).toEqual([1, [200, 200, 200]]);
    await expect.poll(() => run.played()).toEqual(["b", "d"]);
    const nodes = createScriptedNodes();
    nodes.gate("held").open();
    await using second = await startWorkflowService({ dataDir: run.service.dataDir, nodes });
    const [runId] = ids;
    expect((await second.ended("w", runId!)).status).toBe("completed");
    expect(nodes.played.map(({ nodeId }) => nodeId)).toEqual(["d", "stop"]);
  });
});
