// Outputs that are marked as sensitive, and what becomes of stored values whose secrets or keys are gone: docs/workflow-definitions.md, "Sensitive
// outputs", and docs/areas/workflow-service.md, "Secrets".
import { readdirSync, readFileSync, statSync } from "node:fs";
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

describe("parameters whose schema says `writeOnly` or `format: password`", () => {
  const secret = { type: "string", writeOnly: true };
  const parameters = {
    type: "object",
    properties: {
      name: { type: "string" },
      pin: { type: "integer", format: "password" },
      card: { $ref: "#/$defs/card" },
      cards: { type: "array", items: { $ref: "#/$defs/card" } },
      pair: { type: "array", prefixItems: [{}, secret], items: { type: "string" } },
      headers: { type: "object", properties: { accept: {} }, additionalProperties: secret },
      either: { anyOf: [{ type: "integer" }, { type: "object", properties: { key: secret } }] },
      named: { $ref: "#other" },
    },
    $defs: {
      card: { type: "object", properties: { number: secret, next: { $ref: "#/$defs/card" } } },
      other: { $anchor: "other", properties: { open: {} } },
    },
  };
  const given = {
    name: "Ada",
    pin: 12,
    card: { number: "n-4929-1111", next: { number: "n-4929-2222" } },
    cards: [{ number: "n-4929-3333", owner: "Bob" }],
    pair: ["shown", "p4ir-value", "also-shown"],
    headers: { accept: "text/plain", "x-key": "h3ader-value" },
    either: { key: "k3y-of-either", id: 7 },
    named: { open: "n4med-value" },
    "*": "st4r",
  };
  const hidden = {
    name: "Ada",
    pin: "***",
    card: { number: "***", next: { number: "***" } },
    cards: [{ number: "***", owner: "Bob" }],
    pair: ["shown", "***", "also-shown"],
    headers: { accept: "text/plain", "x-key": "***" },
    either: { key: "***", id: 7 },
    named: "***",
    "*": "st4r",
  };
  const secrets = /n-4929|p4ir|h3ader|k3y-of-either|n4med/;
  const definition = {
    parameters,
    nodes: {
      a: say("${{ parameters.card }}"),
      ask: asks({ needs: ["a"], with: { title: "Pay with ${{ parameters.card.number }}?" } }),
      b: say("For ${{ parameters.headers['x-key'] }}", { needs: ["ask"] }),
    },
    outputs: { upper: "${{ parameters.card.number.upperAscii() }}" },
  };

  it("are hidden in details, events, gates and outputs, and in the store, and are whole for nodes, after a restart, too", async () => {
    const folder = temporaryFolder();
    try {
      const options = { dataDir: folder.path, definitions: { "kept.json": definition }, runtime };
      const first = await startWorkflowService(options);
      const runId = await first.trigger("kept", given);
      const waiting = await first.until("kept", runId, ({ status }) => status === "waiting_human");
      expect(waiting).toMatchObject({ parameters: hidden, humanGate: { title: "Pay with ***?" } });
      expect(first.nodes.played.map(({ say: played }) => played)).toEqual([given.card]);
      const events = await first.events(runId);
      const shown: unknown[] = [];
      for (let event = await events.next(); event; event = await events.next()) {
        shown.push(event);
        if (event.event === "workflow:human_gate") break;
      }
      events.leave();
      await first.close();
      for (const name of readdirSync(folder.path)) {
        if (statSync(join(folder.path, name)).isFile())
          expect(readFileSync(join(folder.path, name), "latin1"), name).not.toMatch(secrets);
      }
      await using second = await startWorkflowService(options);
      expect(await decide(second, "kept", runId, {})).toBe(200);
      const ended = await second.ended("kept", runId);
      expect(ended).toMatchObject({ parameters: hidden, finalOutputs: { upper: "***" } });
      expect(ended.nodeResults.b.outputs).toBe("For ***");
      expect(second.nodes.played.map(({ say: played }) => played)).toEqual(["For h3ader-value"]);
      expect(shown).toContainEqual(expect.objectContaining({ event: "workflow:human_gate" }));
      expect(JSON.stringify([waiting, ended, shown])).not.toMatch(secrets);
    } finally {
      folder.remove();
    }
  });

  it("stay whole and hidden in a run that resumes or repeats the run", async () => {
    const failing = {
      parameters,
      nodes: {
        a: say("${{ parameters.card.number }}"),
        bad: { type: "fail", needs: ["a"], with: { message: "No ${{ parameters.pair[1] }}" } },
      },
    };
    const id = await deploy(shared, failing);
    const runId = await shared.trigger(id, given);
    expect((await shared.ended(id, runId)).error.message).toBe("No ***");
    for (const [action, body] of [
      ["resume", { from: "a" }],
      ["rerun", { parameters: { name: "Eve" } }],
    ] as const) {
      const headers = { "x-execution-grant": await shared.grant({ workflowId: id }) };
      const path = `/api/workflow/${id}/runs/${runId}/${action}`;
      const started = await shared.call("POST", path, { idempotencyKey: action, ...body }, { headers });
      expect(started.status).toBe(200);
      const detail = await shared.ended(id, started.body.runId);
      expect(detail.parameters).toEqual({ ...hidden, ...("parameters" in body && body.parameters) });
      expect(shared.nodes.played.at(-1)?.say).toBe(given.card.number);
    }
  });

  it("are hidden in the input of the node that starts the workflow, and from then on in its run", async () => {
    const child = await deploy(shared, {
      parameters,
      nodes: { a: say("${{ parameters.pair[1] }}") },
      outputs: { said: "${{ nodes.a.output }}" },
    });
    const { nodeResults, finalOutputs } = await play(
      {
        nodes: { c: { type: "workflow", with: { workflow: child, parameters: "${{ parameters }}" } } },
        outputs: { said: "${{ nodes.c.output.said }}", own: "${{ parameters.pair }}" },
      },
      given,
    );
    expect(nodeResults.c.inputs).toEqual({ workflow: child, parameters: hidden });
    expect(nodeResults.c.outputs).toEqual({ said: "***" });
    expect(finalOutputs).toEqual({ said: "***", own: ["shown", "***", "also-shown"] });
    const [run] = (await shared.call("GET", `/api/workflow/${child}/runs`)).body.runs;
    expect(await shared.ended(child, run.runId)).toMatchObject({ parameters: hidden, finalOutputs: { said: "***" } });
  });

  it("are left out of searches, also where only a branch of the schema calls them secret", async () => {
    const id = await deploy(shared, {
      parameters: {
        type: "object",
        properties: { name: { type: "string" }, code: { type: "string" } },
        allOf: [{ properties: { code: { writeOnly: true } } }],
      },
      search: { parameters: ["name", "code"] },
      nodes: { a: say("done") },
    });
    const runId = await shared.trigger(id, { name: "Ada", code: "c0de-value" });
    await shared.ended(id, runId);
    const found = async (field: string) =>
      (await shared.call("GET", `/api/workflow/runs/search?workflowId=${id}&parameter=${encodeURIComponent(field)}`)).body.runs;
    expect(await found("name=Ada")).toMatchObject([{ runId, fields: { parameters: { name: "Ada" } } }]);
    expect((await found("name=Ada"))[0].fields.parameters).not.toHaveProperty("code");
    expect(await found("code=c0de-value")).toEqual([]);
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
