import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { runCommand } from "../../harness/portico-process.ts";
import { type WorkflowFolder, workflowFolder } from "../../harness/workflow-process.ts";

// A test runs several commands, one after another, each in a process of its own.
vi.setConfig({ testTimeout: 60_000 });

const workspace = join(import.meta.dirname, "../../..");
const yamlOf = (page: string) => /^```yaml\n([\s\S]*?)^```$/m.exec(readFileSync(join(workspace, page), "utf8"))![1]!;

const definition = `
settings: { timeout: 30d }
nodes:
  fetch:
    type: http
    timeout: 1s
    retry: { attempts: 3, delay: 1h }
    with: { url: https://example.com, headers: { key: "\${{ secrets.KEY }}" } }
  pause: { type: wait, needs: [fetch], with: { for: 7d } }
  each:
    type: map
    needs: [pause]
    with:
      items: "[1, 2]"
      nodes:
        ask: { type: agent, with: { agent: nobody, prompt: hi }, onError: continue }
        double: { type: code, with: { source: "return input * 2", input: "\${{ item }}" } }
      result: "has(nodes.ask.output) ? nodes.ask.output.text : string(nodes.double.output)"
  below: { type: workflow, needs: [each], with: { workflow: elsewhere } }
outputs: { texts: "\${{ nodes.each.output }}", below: "\${{ nodes.below.output.n }}" }
`;

let folder: WorkflowFolder;
beforeEach(() => {
  folder = workflowFolder();
  folder.deploy("flow.yaml", definition);
});
afterEach(() => folder[Symbol.dispose]());

const answered = {
  fetch: [{ error: { code: "http_status" } }, { output: { status: 200 } }],
  "each.ask": { output: { text: "hello" } },
  "each[1].ask": { error: { code: "agent_failed" } },
  below: { output: { n: 3 } },
};
const good = {
  name: "good",
  nodes: answered,
  expect: {
    status: "completed",
    outputs: { texts: ["hello", "4"], below: 3 },
    nodes: { fetch: "completed", "each[1].ask": "failed" },
  },
};
const write = (cases: object | string, name = "cases.json") =>
  writeFileSync(
    join(folder.path, name),
    typeof cases === "string"
      ? cases
      : JSON.stringify({ definition: "workflows/flow.yaml", secrets: { KEY: "secret-key" }, ...cases }),
  );
const test = (...args: string[]) => runCommand(["workflow", "test", ...args], { cwd: folder.path });

const refusal = { status: 409, body: { why: "Taken" } };
/** A service that refuses every request. */
async function startRefusing() {
  const server = createServer((_request, response) => {
    response.writeHead(refusal.status, { "content-type": "application/json" }).end(JSON.stringify(refusal.body));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe("portico workflow test", () => {
  it("runs a definition on the answers of a case, through retries, waits of days, maps, agents and sub-workflows", async () => {
    write({ cases: [good] });
    expect(await test("cases.json")).toEqual({ code: 0, stdout: "ok  cases.json: good\n1 passed, 0 failed\n", stderr: "" });
  });

  it("prints each place that differs, and ends with 1", async () => {
    const wrong = { status: "completed", outputs: { texts: ["hello", "5"], below: 3 }, nodes: { fetch: "skipped" } };
    write({ cases: [good, { ...good, name: "wrong", expect: wrong }] });
    const { code, stdout } = await test("cases.json");
    expect(code).toBe(1);
    expect(stdout.split("\n")).toEqual([
      "ok  cases.json: good",
      "FAILED  cases.json: wrong",
      '        outputs.texts[1]: expected "5", got "4"',
      '        nodes.fetch: expected "skipped", got "completed"',
      "1 passed, 1 failed",
      "",
    ]);
    const { stdout: json } = await test("cases.json", "--json");
    expect(JSON.parse(json)).toMatchObject([
      {
        file: "cases.json",
        cases: [
          { name: "good", isOk: true, differences: [] },
          { name: "wrong", isOk: false },
        ],
      },
    ]);
  });

  it("fails a case that has no answer for a node that the run reaches", async () => {
    const { below: _below, ...others } = answered;
    write({ cases: [{ ...good, nodes: others }] });
    const { code, stdout } = await test("cases.json");
    expect(code).toBe(1);
    expect(stdout).toContain("nodes.below: the case has no answer for this node");
  });

  it("gives expressions the status and the body of a scripted error, and the inner node of a map", async () => {
    folder.deploy(
      "flow.yaml",
      `
nodes:
  create: { type: http, onError: continue, with: { url: "https://example.com" } }
  each:
    type: map
    onError: continue
    with:
      items: "[1, 2]"
      concurrency: 1
      nodes: { send: { type: http, with: { url: "https://example.com" } } }
      result: nodes.send.output
outputs: { create: "\${{ nodes.create.error }}", each: "\${{ nodes.each.error }}" }
`,
    );
    const taken = { code: "http_status", message: "Taken", status: 409, body: { field: "mail", why: ["taken"] } };
    const refused = { code: "http_status", message: "The case lets this node fail", status: 503 };
    const cut = { body: "x".repeat(16 * 1024 - '""'.length), bodyTruncated: true };
    const errors = {
      nodes: {
        create: { error: taken },
        "each.send": { output: null },
        "each[1].send": { error: { code: "http_status", status: 503, body: "x".repeat(17_000) } },
      },
      expect: { status: "completed", outputs: { create: taken, each: { ...refused, ...cut, nodeId: "each[1].send" } } },
    };
    write({ cases: [{ name: "errors", ...errors }] });
    expect(await test("cases.json")).toMatchObject({ stdout: expect.stringContaining("1 passed"), stderr: "", code: 0 });
    write({ cases: [{ name: "errors", ...errors, nodes: { ...errors.nodes, create: { error: { code: "taken", body: 1 } } } }] });
    expect(await test("cases.json")).toMatchObject({ code: 1, stderr: expect.stringContaining("body needs status") });
  });

  it("executes what follows a failure, and lets a gate without its notification be decided", async () => {
    folder.deploy(
      "flow.yaml",
      `
nodes:
  ask:
    type: human_gate
    with: { title: Well?, links: true, notify: { url: "https://10.0.0.1/hook", body: "\${{ gate.link }}" } }
  send: { type: http, needs: [ask], with: { url: "https://example.com" } }
  clean: { type: tool, if: always, needs: [send], with: { tool: sweep } }
onFailure: { type: workflow, with: { workflow: alarm, parameters: { about: "\${{ failure.code }}" } } }
`,
    );
    const refused = { error: { code: "http_status", retryable: false } };
    const failing = {
      nodes: { ask: refused, send: refused, clean: { output: "clean" }, onFailure: { output: null } },
      gates: { ask: { decision: "approve" } },
      expect: {
        ...{ status: "failed", error: { code: "http_status", nodeId: "send" } },
        nodes: { ask: "completed", clean: "completed", onFailure: "completed" },
      },
    };
    const well = {
      ...failing,
      nodes: { ...failing.nodes, send: { output: {} } },
      expect: { status: "completed", nodes: { clean: "completed" } },
    };
    write({
      cases: [
        { name: "failing", ...failing },
        { name: "well", ...well },
      ],
    });
    expect(await test("cases.json")).toMatchObject({
      stdout: expect.stringContaining("2 passed, 0 failed"),
      stderr: "",
      code: 0,
    });
  });

  it("sends the events of callbacks, lets their time pass, and fails a case that says nothing about one", async () => {
    folder.deploy(
      "pay.yaml",
      `
nodes:
  each:
    type: map
    with:
      items: "\${{ ['a', 'b'] }}"
      nodes:
        pay:
          type: callback
          retry: { attempts: 2 }
          with:
            schema: { type: object, required: [id] }
            request: { url: "https://10.0.0.1/hook", body: { to: "\${{ callback.url }}" } }
      result: "\${{ nodes.pay.output.id }}"
outputs: { all: "\${{ nodes.each.output }}" }
`,
    );
    const cases = {
      well: {
        callbacks: { "each.pay": { event: { id: 1 } }, "each[1].pay": ["timeout", { event: { id: 2 } }] },
        expect: { status: "completed", outputs: { all: [1, 2] } },
      },
      late: { callbacks: { "each.pay": "timeout" }, expect: { status: "failed", error: { code: "callback_timeout" } } },
      unsent: {
        nodes: { "each.pay": { error: { code: "http_status", retryable: false } } },
        expect: { status: "failed", error: { code: "http_status" } },
      },
    };
    const written = (some: object) => Object.entries(some).map(([name, each]) => ({ name, ...each }));
    folder.deploy("../cases.json", { definition: "workflows/pay.yaml", cases: written(cases) });
    expect(await test("cases.json")).toMatchObject({
      stdout: expect.stringContaining("3 passed, 0 failed"),
      stderr: "",
      code: 0,
    });
    const wrong = {
      none: { expect: { status: "completed" } },
      wrong: { ...cases.well, callbacks: { "each.pay": { event: {} } } },
    };
    folder.deploy("../cases.json", { definition: "workflows/pay.yaml", cases: written(wrong) });
    const { stdout } = await test("cases.json");
    expect(stdout).toContain("nodes.each[0].pay: the case has no answer for this node");
    expect(stdout).toContain("callbacks.each[0].pay: the event is refused");
  });

  it("decides at gates as the case says, and fails a case that has no decision", async () => {
    mkdirSync(join(folder.path, "workflow-tests"));
    folder.deploy("triage.yaml", yamlOf("docs/workflow-definitions.md"));
    const page = yamlOf("docs/workflow-tests.md");
    write(page, "workflow-tests/triage.yaml");
    write(page.replace("gates: { approve: timeout }", "gates: {}"), "workflow-tests/undecided.yaml");
    const shown = readFileSync(join(workspace, "docs/workflow-tests.md"), "utf8");
    expect(shown).toContain("\nnpx portico workflow test workflow-tests/triage.yaml\n");
    expect((await test("workflow-tests/triage.yaml")).stdout).toMatch(/2 passed, 0 failed\n$/);
    const { code, stdout } = await test("workflow-tests/undecided.yaml");
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining("gates.approve: the run waits here, and the case has no decision"),
    ]);
  });

  it("repeats a run that portico workflow record has written, with its errors and decisions", async () => {
    using server = await startRefusing();
    folder.deploy(
      "create.yaml",
      `
parameters: { type: object, properties: { mail: { type: string } } }
nodes:
  create: { type: http, onError: continue, with: { url: "${server.url}/\${{ parameters.mail }}", headers: { key: "\${{ secrets.KEY }}" } } }
  ask: { type: human_gate, needs: [create], with: { title: "\${{ nodes.create.error.body.why }}" } }
outputs: { status: "\${{ nodes.create.error.status }}", why: "\${{ nodes.create.error.body }}", comment: "\${{ nodes.ask.output.comment }}" }
`,
    );
    const config = { workflow: { http: { allow: ["127.0.0.1"] }, secrets: { KEY: "secret-key" } } };
    const record = (...args: string[]) => runCommand(["workflow", "record", ...args], { cwd: folder.path });
    await using service = await folder.start("workflow", { config });
    const runId = await service.trigger("create", { mail: "ada" });
    await service.until("create", runId, "waiting_human");
    const early = await record(runId);
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining("has not ended")]);
    const decided = await runCommand(["workflow", "approve", runId, "--comment", "fine"], { cwd: folder.path });
    expect(decided.code).toBe(0);
    await service.until("create", runId, "completed");

    mkdirSync(join(folder.path, "tests"));
    expect(await record(runId, "--out", "tests/create.yaml")).toEqual({ code: 0, stdout: "", stderr: "" });
    const written = readFileSync(join(folder.path, "tests/create.yaml"), "utf8");
    expect(parse(written)).toEqual({
      definition: "../workflows/create.yaml",
      cases: [
        {
          name: `like ${runId}`,
          parameters: { mail: "ada" },
          nodes: {
            create: { error: { ...refusal, message: expect.stringContaining("409"), code: "http_status", retryable: false } },
          },
          gates: { ask: { decision: "approve", comment: "fine" } },
          expect: {
            status: "completed",
            outputs: { status: 409, why: refusal.body, comment: "fine" },
            nodes: { create: "failed", ask: "completed" },
          },
        },
      ],
    });
    expect(written).not.toContain("secret-key");
    expect(await test("tests/create.yaml")).toMatchObject({ code: 0, stdout: expect.stringContaining("1 passed, 0 failed") });
    expect(parse((await record(runId)).stdout).definition).toBe("workflows/create.yaml");
    expect(await record(runId, "--out", "tests/create.yaml")).toMatchObject({ code: 73 });
    expect(readFileSync(join(folder.path, "tests/create.yaml"), "utf8")).toBe(written);
  });

  it.each([
    ["an unknown key", { cases: [{ ...good, expected: {} }] }, "cases.0.expected"],
    ["an unknown node", { cases: [{ ...good, nodes: { gone: { output: 1 } } }] }, "The definition has no such node"],
    ["an answer of an executed node", { cases: [{ ...good, nodes: { pause: { output: 1 } } }] }, "are executed"],
    ["two cases of one name", { cases: [good, good] }, "Two cases have the name"],
  ])("refuses %s with 1", async (_what, cases, message) => {
    write(cases);
    const { code, stdout, stderr } = await test("cases.json");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(message);
  });

  it("ends with 66 if a file cannot be read", async () => {
    expect((await test("none.yaml")).code).toBe(66);
  });
});
