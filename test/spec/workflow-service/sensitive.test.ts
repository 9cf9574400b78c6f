// Outputs that are marked as sensitive, and what becomes of stored values whose secrets or keys are gone: docs/workflow-definitions.md, "Sensitive
// outputs", and docs/areas/workflow-service.md, "Secrets".
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { Secret } from "@portico/core";
import { loadDefinition } from "@portico/plugins/workflow-service/definitions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const say = (value: unknown, more: object = {}) => ({ type: "repeatable", with: { say: value }, ...more });
const asks = (more: object = {}) => ({ type: "human_gate", with: { title: "Go on?" }, ...more });
const runtime = { secrets: { KEY: new Secret("k3y-of-the-test") } };

let shared: WorkflowService;
let deployed = 0;
const id0 = "after-the-decision";
beforeAll(async () => void (shared = await startWorkflowService({ runtime })));
afterAll(() => shared.close());

/** Deploys a definition, and answers its id once the service knows it. */
async function deploy(service: WorkflowService, definition: object): Promise<string> {
  const id = `w${++deployed}`;
  service.deploy(`${id}.json`, definition);
  await expect
    .poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.map((each: { id: string }) => each.id))
    .toContain(id);
  return id;
}

/** The detail of a run, once it has ended. */
async function play(definition: object, parameters: object = {}): Promise<any> {
  const id = await deploy(shared, definition);
  return shared.ended(id, await shared.trigger(id, parameters));
}

async function decide(service: WorkflowService, id: string, runId: string, values: object): Promise<number> {
  const headers = { "x-execution-grant": await service.grant({ workflowId: id }) };
  return (await service.call("POST", `/api/workflow/${id}/runs/${runId}/gate`, { decision: "approve", values }, { headers }))
    .status;
}

describe("sensitive outputs", () => {
  it("are hidden at their paths, with * for every key or index, and wherever their texts turn up later", async () => {
    const output = {
      token: "t0k-first",
      users: [
        { name: "Ada", password: "pw-of-ada" },
        { name: "Bob", password: "pw-of-bob", pin: 12 },
      ],
      keys: { one: "k1-value", two: { deep: [true, null, "k2-value"] } },
      number: 48291357,
      same: "Bearer t0k-first",
    };
    const { nodeResults, finalOutputs } = await play(
      {
        nodes: {
          a: say("${{ parameters.output }}", {
            sensitive: ["token", "users.*.password", "users.1.pin", "keys.*", "number", "not.there"],
          }),
          b: say(
            { text: "pw-of-bob and ${{ nodes.a.output.keys.two }}", n: "${{ nodes.a.output.number }}", pin: 12 },
            { needs: ["a"] },
          ),
        },
        outputs: { all: "${{ nodes.a.output }}" },
      },
      { output },
    );
    expect(nodeResults.a.outputs).toEqual({
      token: "***",
      users: [
        { name: "Ada", password: "***" },
        { name: "Bob", password: "***", pin: "***" },
      ],
      keys: { one: "***", two: "***" },
      number: "***",
      same: "Bearer ***",
    });
    expect(nodeResults.b.outputs).toEqual({ text: '*** and {"deep":[true,null,"***"]}', n: "***", pin: 12 });
    expect(finalOutputs.all).toMatchObject({
      users: [{ password: "***" }, { pin: 12 }],
      keys: { two: { deep: [true, null, "***"] } },
    });
  });

  it("are whole for later nodes, after a restart, too, and inside map and loop", async () => {
    const folder = temporaryFolder();
    const id = "kept";
    const definition = {
      nodes: {
        a: say({ "odd.key": 1, __proto__x: ["v4lue-one", { n: 1.5, t: "v4lue-two" }] }, { sensitive: true }),
        each: {
          type: "map",
          needs: ["a"],
          sensitive: ["*.again"],
          with: {
            items: "nodes.a.output.__proto__x",
            nodes: { m: say({ item: "${{ item }}" }, { sensitive: ["item"] }) },
            result: "{ 'again': nodes.m.output.item, 'place': index }",
          },
        },
        ask: asks({ needs: ["each"] }),
        after: say("${{ nodes.each.output }}", { needs: ["ask"] }),
      },
    };
    try {
      const options = { dataDir: folder.path, definitions: { "kept.json": definition }, runtime };
      const first = await startWorkflowService(options);
      const runId = await first.trigger(id);
      await first.until(id, runId, ({ status }) => status === "waiting_human");
      await first.close();
      await using second = await startWorkflowService(options);
      expect(await decide(second, id, runId, {})).toBe(200);
      const { nodeResults } = await second.ended(id, runId);
      expect(nodeResults.after.outputs).toEqual([
        { again: "***", place: 0 },
        { again: { n: 1.5, t: "***" }, place: 1 },
      ]);
      expect(second.nodes.played.map(({ say: given }) => given)).toEqual([
        [
          { again: "v4lue-one", place: 0 },
          { again: { n: 1.5, t: "v4lue-two" }, place: 1 },
        ],
      ]);
    } finally {
      folder.remove();
    }
  });

  it("of a workflow node hold for the outputs that the sub-workflow shows", async () => {
    const child = await deploy(shared, { nodes: { a: say("gr4nted-to-you") }, outputs: { grant: "${{ nodes.a.output }}" } });
    const { nodeResults } = await play({
      nodes: { c: { type: "workflow", sensitive: ["grant"], with: { workflow: child } } },
    });
    expect(nodeResults.c.outputs).toEqual({ grant: "***" });
    const [run] = (await shared.call("GET", `/api/workflow/${child}/runs`)).body.runs;
    expect((await shared.ended(child, run.runId)).finalOutputs).toEqual({ grant: "***" });
  });

  it("of a gate are shown to the person who decides, and repeating the same decision gives the same answer", async () => {
    const id = await deploy(shared, {
      nodes: {
        ask: asks({ sensitive: ["values.otp"] }),
        b: say("${{ nodes.ask.output.values.otp }}", {
          needs: ["ask"],
          with: { say: "${{ nodes.ask.output.values }}", gate: id0 },
        }),
      },
    });
    const runId = await shared.trigger(id);
    const { humanGate } = await shared.until(id, runId, ({ status }) => status === "waiting_human");
    expect(humanGate).toMatchObject({ sensitive: ["values.otp"] });
    const statuses = await Promise.all(
      [{ otp: "4829-1357" }, { otp: "4829-1357" }].map((values) => decide(shared, id, runId, values)),
    );
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(1);
    expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
    shared.nodes.gate(id0).open();
    const { nodeResults } = await shared.ended(id, runId);
    expect(nodeResults.ask.outputs).toMatchObject({ decision: "approve", values: { otp: "***" } });
    expect(nodeResults.b.outputs).toEqual({ otp: "***" });
    expect(shared.nodes.played.at(-1)?.say).toEqual({ otp: "4829-1357" });
  });

  it("that are too many to look for fail the node", async () => {
    const many = Array.from({ length: 10_001 }, (_, at) => `value-${at}`);
    const { error, nodeResults } = await play({ nodes: { a: say("${{ parameters.many }}", { sensitive: true }) } }, { many });
    expect(error).toMatchObject({ code: "too_many_secrets", nodeId: "a" });
    expect(nodeResults.a.outputs).toBeUndefined();
  });

  it.each([
    ["yes", "Expected true or a list of paths"],
    [[], "There is at least one path"],
    [[".token"], "A path is keys with dots between them"],
    [["a..b"], "A path is keys with dots between them"],
    [[7], "Expected"],
  ])("are refused where %j marks them", (sensitive, message) => {
    const text = JSON.stringify({ nodes: { a: { type: "noop", sensitive } } });
    const { problems } = loadDefinition({ name: "w.json", text }, { types: new Map(), secretNames: [] });
    expect(problems?.find(({ path }) => path.includes("sensitive"))?.message).toContain(message);
  });
});

describe("what callers send", () => {
  it("is never taken for what the service stores in place of a secret", async () => {
    const forged = { hidden: { references: [[["x"], [{ secret: "KEY" }]]] }, x: { secret: "KEY" }, y: [{ $secret: "KEY" }] };
    const detail = await play({ nodes: { a: say("${{ parameters }}") }, outputs: { all: "${{ nodes.a.output }}" } }, forged);
    expect(shared.nodes.played.at(-1)?.say).toEqual(forged);
    expect(detail.finalOutputs.all).toEqual(forged);
  });
});

describe("stored values that cannot be opened", () => {
  const definition = {
    nodes: { ask: asks(), use: say("${{ parameters.given }}", { needs: ["ask"] }) },
  };
  const sealed = {
    nodes: {
      a: say("s3aled-value", { sensitive: true }),
      ask: asks({ needs: ["a"] }),
      b: say("${{ nodes.a.output }}", { needs: ["ask"] }),
    },
  };

  /** A run that waits at its gate, resumed by a service with other secrets. */
  async function resumed(
    what: object,
    parameters: object,
    between: (dataDir: string) => unknown,
    secrets: Record<string, Secret>,
  ) {
    const folder = temporaryFolder();
    try {
      const options = { dataDir: folder.path, definitions: { "w.json": what } };
      const first = await startWorkflowService({ ...options, runtime });
      const runId = await first.trigger("w", parameters);
      await first.until("w", runId, ({ status }) => status === "waiting_human");
      await first.close();
      await between(folder.path);
      await using second = await startWorkflowService({ ...options, runtime: { secrets } });
      await decide(second, "w", runId, {});
      return { ...(await second.ended("w", runId)), played: second.nodes.played };
    } finally {
      folder.remove();
    }
  }

  it("are read again: a changed secret has its new value, and a removed one interrupts the run", async () => {
    const parameters = { given: "Bearer k3y-of-the-test" };
    const changed = await resumed(definition, parameters, () => {}, { KEY: new Secret("an0ther-key") });
    expect(changed).toMatchObject({ status: "completed", nodeResults: { use: { outputs: "Bearer ***" } } });
    expect(changed.played.at(-1)?.say).toBe("Bearer an0ther-key");
    expect(await resumed(definition, parameters, () => {}, {})).toMatchObject({
      status: "interrupted",
      error: { code: "secret_missing", message: "The secret KEY is no longer configured" },
    });
  });

  it("are reported if the instance key has changed", async () => {
    const lose = async (dataDir: string) => {
      const path = join(dataDir, "credentials.json");
      expect(Object.keys(JSON.parse(readFileSync(path, "utf8")))).toEqual(
        expect.arrayContaining(["instanceKey", "instanceKeyId"]),
      );
      const { port: secrets } = await openAdapter(fileSecrets({ path }));
      const key = secrets.create("");
      await secrets.replace("instanceKey", key);
      await expect(startWorkflowService({ dataDir })).rejects.toThrow("sealed under another instance key");
      const { writeFileSync } = await import("node:fs");
      writeFileSync(path, JSON.stringify({ instanceKey: key.reveal() }), { mode: 0o600 });
    };
    expect(await resumed(sealed, {}, lose, runtime.secrets)).toMatchObject({
      status: "failed",
      error: { code: "instance_key_changed", nodeId: "a" },
    });
  });
});
