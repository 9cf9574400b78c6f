import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../harness/portico-process.ts";
import { type WorkflowFolder, workflowFolder } from "../../harness/workflow-process.ts";

const gated = {
  nodes: {
    ok: {
      type: "human_gate",
      with: {
        title: "Go on?",
        message: "Shall it?",
        form: { type: "object", required: ["severity"], properties: { severity: { type: "integer" } } },
      },
    },
    done: { type: "transform", needs: ["ok"], with: { value: "${{ nodes.ok.output.values.severity }}" } },
  },
  outputs: { severity: "${{ nodes.done.output }}" },
};
const fine = { nodes: { one: { type: "transform", with: { value: 1 } } } };
const broken = 'nodes:\n  one:\n    type: transfrom\n  two:\n    type: transform\n    with: { value: "${{ secrets.NOPE }}" }\n';

// A test runs several commands, one after another, each in a process of its own.
vi.setConfig({ testTimeout: 60_000 });

let folder: WorkflowFolder;
beforeEach(() => {
  folder = workflowFolder();
});
afterEach(() => folder[Symbol.dispose]());

const run = (...args: string[]) => runCommand(args, { cwd: folder.path });

describe("portico workflow check", () => {
  it("prints every problem as FILE:LINE:COLUMN: message, and ends with 1", async () => {
    folder.deploy("broken.yaml", broken);
    folder.deploy("fine.json", fine);
    const { code, stdout, stderr } = await run("workflow", "check", "workflows/fine.json", "workflows/broken.yaml");
    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^workflows\/broken\.yaml:3:11: .*transfrom/),
      expect.stringMatching(/^workflows\/broken\.yaml:6:\d+: .*NOPE/),
    ]);
    const { stdout: json } = await run("workflow", "check", "--json", "workflows/broken.yaml");
    expect(JSON.parse(json)).toMatchObject([
      { file: "workflows/broken.yaml", line: 3, column: 11, path: "$.nodes.one.type" },
      {},
    ]);
  });

  it("prints nothing and ends with 0 where nothing is wrong, and knows the secrets of the settings by name", async () => {
    folder.deploy("secret.json", { nodes: { one: { type: "transform", with: { value: "${{ secrets.NOPE }}" } } } });
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify({ workflow: { secrets: { NOPE: "value" } } }), {
      mode: 0o600,
    });
    expect(await run("workflow", "check", "workflows/secret.json")).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(existsSync(join(folder.path, ".portico"))).toBe(false);
  });

  it("reports two files with the same id", async () => {
    folder.deploy("a/one.json", fine);
    folder.deploy("b/one.json", fine);
    expect(await run("workflow", "check", "workflows/a/one.json", "workflows/b/one.json")).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^workflows\/b\/one\.json:1:1: .*workflows\/a\/one\.json/),
    });
  });

  it("for only the workflow service, reports that the service has no agents", async () => {
    folder.deploy("ask.json", { nodes: { ask: { type: "agent", with: { agent: "helper", prompt: "x" } } } });
    mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    expect((await run("workflow", "check", "workflows/ask.json")).code).toBe(0);
    rmSync(join(folder.path, "agents"), { recursive: true });
    expect(await run("workflow", "check", "workflows/ask.json", "--preset", "workflow")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("No agents are configured"),
    });
  });

  it("knows providers, models and tools from the settings, and calls no server", async () => {
    const providers = [{ id: "main", protocol: "messages", baseUrl: "http://127.0.0.1:9/v1", models: ["m-large"] }];
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify({ providers }));
    const model = (provider: string, name: string) => ({ type: "model", with: { provider, model: name, prompt: "x" } });
    folder.deploy("models.json", {
      nodes: { right: model("main", "m-large"), wrong: model("main", "m-tiny"), none: model("demo", "demo") },
    });
    folder.deploy("tools.json", { nodes: { no: { type: "tool", with: { tool: "files/read" } } } });
    const { code, stdout } = await run("workflow", "check", "workflows/models.json", "workflows/tools.json");
    expect(code).toBe(1);
    expect(stdout.trimEnd().split("\n")).toEqual([
      expect.stringContaining('serves no model "m-tiny"'),
      expect.stringContaining('There is no provider "demo"'),
      expect.stringContaining('There is no tool "files/read"'),
    ]);
  });

  it("accepts folders, and reports unknown agents, workflows and tools", async () => {
    mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
    writeFileSync(join(folder.path, "agents/helper/agent.json"), JSON.stringify({ name: "Helper" }));
    const settings = { mcpServers: { files: { url: "http://127.0.0.1:9/mcp" } }, workflow: { definitionsDir: "workflows" } };
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(settings));
    const agent = (id: string, toolIds: readonly string[]) => ({ type: "agent", with: { agent: id, prompt: "x", toolIds } });
    const other = (workflow: string) => ({ type: "workflow", with: { workflow } });
    const tool = (id: string) => ({ type: "tool", with: { tool: id } });
    folder.deploy("deployed.json", fine);
    folder.deploy(".hidden/broken.yaml", broken);
    folder.deploy("own/names.json", {
      nodes: {
        a: agent("helper", ["SendUserMessage", "files/read", "RunWorkflow"]),
        b: agent("${{ parameters.agent }}", ["${{ parameters.tool }}"]),
        c: agent("helpr", ["SendUserMesage", "disk/read"]),
        d: other("deployed"),
        e: other("names"),
        f: other("deploid"),
        g: tool("files/read"),
        h: tool("RunWorkflw"),
      },
    });
    const { code, stdout, stderr } = await run("workflow", "check", "workflows/own");
    expect([code, stderr]).toEqual([1, ""]);
    const message = (text: string) =>
      expect.stringMatching(new RegExp(`^workflows/own/names\\.json:\\d+:\\d+: ${text}`)) as string;
    expect(stdout.trimEnd().split("\n")).toEqual([
      message('There is no agent "helpr": did you mean "helper"'),
      message('There is no tool "SendUserMesage": did you mean "SendUserMessage"'),
      message('There is no tool "disk/read"$'),
      message('There is no workflow "deploid": did you mean "deployed"'),
      message('There is no tool "RunWorkflw": did you mean "RunWorkflow"'),
    ]);
    expect(await run("workflow", "check", "workflows", "workflows/deployed.json")).toMatchObject({ code: 1, stdout });
  });

  it("warns of what looks like a mistake, and ends with 0; with --strict with 1", async () => {
    folder.deploy(
      "odd.yaml",
      `parameters:
  type: object
  requried: [text]
  properties: { text: { type: string }, count: { type: integer, minmum: 1 } }
nodes:
  one: { type: transform, if: parameters.txt == 'a', with: { value: "\${{ parameters.text }} \${{ parameters['cuont'] }}" } }
  two: { type: transform, with: { value: 2 } }
outputs: { one: "\${{ nodes.one.output }}", two: "\${{ nodes.two.output }}" }
`,
    );
    const told = [
      'workflows/odd.yaml:3:3: warning: There is no keyword of JSON Schema "requried": did you mean "required"?',
      'workflows/odd.yaml:4:65: warning: There is no keyword of JSON Schema "minmum": did you mean "minimum"?',
      'workflows/odd.yaml:6:42: warning: There is no declared parameter "txt": did you mean "text"?',
      'workflows/odd.yaml:6:108: warning: There is no declared parameter "cuont": did you mean "count"?',
      'workflows/odd.yaml:8:28: warning: The node "one" has no output if it is skipped or fails: check with has(nodes.one.output)',
    ];
    const lax = await run("workflow", "check", "workflows/odd.yaml");
    expect([lax.code, lax.stdout.trimEnd().split("\n")]).toEqual([0, told]);
    expect(await run("workflow", "check", "--strict", "workflows/odd.yaml")).toMatchObject({ code: 1, stdout: lax.stdout });
    const { stdout } = await run("workflow", "check", "--json", "workflows/odd.yaml");
    expect((JSON.parse(stdout) as { severity: string }[]).map(({ severity }) => severity)).toEqual(told.map(() => "warning"));
  });

  it("reports up to 200 problems of a file", async () => {
    folder.deploy("many.yaml", Array.from({ length: 300 }, (_, index) => `k${index}: 1\n`).join(""));
    const { code, stdout, stderr } = await run("workflow", "check", "workflows/many.yaml");
    expect([code, stdout.trimEnd().split("\n").length, stderr]).toEqual([1, 200, ""]);
  });

  it("ends with 66 for a file in another encoding than UTF-8, and names UTF-16", async () => {
    const file = join(folder.path, "wide.yaml");
    for (const [bytes, fault] of [
      [Buffer.from("\uFEFFnodes: {}", "utf16le"), "is UTF-16 text: save it as UTF-8"],
      [Buffer.from("name: Übung", "latin1"), "is not UTF-8 text"],
    ] as const) {
      writeFileSync(file, bytes);
      expect(await run("workflow", "check", file)).toMatchObject({ code: 66, stderr: `${file} ${fault}\n` });
    }
  });

  it("ends with 78 and the encoding if the configuration is UTF-16", async () => {
    const file = join(folder.path, "portico.config.yaml");
    writeFileSync(file, Buffer.from("\uFEFFworkflow: {}", "utf16le"));
    expect(await run("start")).toMatchObject({
      code: 78,
      stderr: expect.stringContaining(`${file} is UTF-16 text: save it as UTF-8`),
    });
  });

  it("ends with 66 for a file that is not there, and 64 without one", async () => {
    expect(await run("workflow", "check", "nope.yaml")).toMatchObject({
      code: 66,
      stderr: "nope.yaml cannot be read (ENOENT)\n",
    });
    expect((await run("workflow", "check")).code).toBe(64);
  });
});

it("portico workflow schema prints a JSON Schema with every kind of node", async () => {
  const { code, stdout } = await run("workflow", "schema");
  const schema = JSON.parse(stdout) as any;
  expect(code).toBe(0);
  expect(schema.$schema).toContain("2020-12");
  expect(schema.$defs.node.properties.type.enum).toEqual(
    expect.arrayContaining([
      "model",
      "agent",
      "tool",
      "http",
      "transform",
      "code",
      "branch",
      "map",
      "loop",
      "wait",
      "human_gate",
    ]),
  );
});

describe("portico grant issue", () => {
  it("fails if no service has ever started, and creates nothing", async () => {
    expect(await run("grant", "issue", "--workflow", "fine")).toMatchObject({
      code: 69,
      stdout: "",
      stderr: expect.stringMatching(/has no tokens yet: start the service with it once/),
    });
    expect(existsSync(join(folder.path, ".portico"))).toBe(false);
  });

  it("prints the grant alone; it starts the workflow once", async () => {
    folder.deploy("fine.json", fine);
    await using service = await folder.start("workflow");
    const { code, stdout, stderr } = await run("grant", "issue", "--workflow", "fine", "--user", "ada");
    expect([code, stderr]).toEqual([0, ""]);
    const executionGrantId = stdout.trim();
    const start = (idempotencyKey: string) =>
      service.call("POST", "/api/workflow/run", { executionGrantId, idempotencyKey, workflowId: "fine" });
    const { status, body } = await start("1");
    expect(status).toBe(200);
    expect((await start("1")).body).toEqual({ ...body, duplicate: true });
    expect((await start("2")).status).toBe(403);
    expect(await service.until("fine", body.runId, "completed")).toMatchObject({ userId: "ada" });
  });

  it("works without a running service, says when it expires, and warns of a workflow that is not deployed", async () => {
    {
      await using service = await folder.start("workflow");
      await service.stop();
    }
    const before = Date.now();
    const { code, stdout, stderr } = await run("grant", "issue", "--workflow", "late", "--ttl", "1h", "--json");
    expect(code).toBe(0);
    expect(stderr).toMatch(/^No usable definition in .* has the id "late"/);
    const { executionGrantId, expiresAt } = JSON.parse(stdout) as Record<string, string>;
    expect(Date.parse(expiresAt!) - before).toBeGreaterThanOrEqual(3_600_000);
    expect(Date.parse(expiresAt!) - Date.now()).toBeLessThanOrEqual(3_600_000);
    folder.deploy("late.json", fine);
    await using service = await folder.start("workflow");
    const body = { executionGrantId, idempotencyKey: "1", definitionPath: "late.json" };
    expect((await service.call("POST", "/api/workflow/run", body)).status).toBe(200);
  });

  it.each([
    [["--ttl", "soon"], "Option --ttl must be a duration"],
    [["--ttl", "1ms"], "Option --ttl must be a duration"],
    [["--binding", "b9"], 'The workflow "fine" has no binding "b9"'],
  ])("refuses %j with 64", async (args, words) => {
    expect(await run("grant", "issue", "--workflow", "fine", ...args)).toMatchObject({
      code: 64,
      stdout: "",
      stderr: expect.stringContaining(words),
    });
  });
});

describe("portico workflow graph", () => {
  it("prints a definition as a Mermaid flowchart, and the problems of a broken one", async () => {
    folder.deploy("gated.json", gated);
    folder.deploy("broken.yaml", broken);
    const { code, stdout } = await run("workflow", "graph", "workflows/gated.json");
    expect(code).toBe(0);
    expect(stdout.trimEnd().split("\n").slice(3)).toEqual([
      "flowchart TD",
      '  n0{{"ok<br/>human_gate"}}',
      '  n1["done<br/>transform"]',
      "  n0 --> n1",
    ]);
    const wrong = await run("workflow", "graph", "workflows/broken.yaml");
    expect([wrong.code, wrong.stdout]).toEqual([1, ""]);
    expect(wrong.stderr).toContain("workflows/broken.yaml:3:11: ");
  });
});

describe("portico workflow approve, reject and cancel", () => {
  it("decide about runs of the service that runs on the data directory, in one line", async () => {
    folder.deploy("gated.json", gated);
    folder.deploy("other.json", fine);
    await using service = await folder.start("workflow");
    const waiting = async () => {
      const runId = await service.trigger("gated");
      await service.until("gated", runId, "waiting_human");
      return runId;
    };

    const approved = await waiting();
    expect(await run("workflow", "approve", approved)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^The workflow service refused: The values do not match the gate's form .*severity/),
    });
    expect(await run("workflow", "approve", approved, "--values", '{"severity":3}', "--comment", "fine")).toEqual({
      code: 0,
      stdout: `The gate ok of the run ${approved} is approved.\n`,
      stderr: "",
    });
    expect(await service.until("gated", approved, "completed")).toMatchObject({
      finalOutputs: { severity: 3 },
      nodeResults: { ok: { outputs: { comment: "fine" } } },
    });

    const rejected = await waiting();
    expect(await run("workflow", "reject", rejected, "--workflow", "gated", "--node", "ok")).toMatchObject({
      code: 0,
      stdout: `The gate ok of the run ${rejected} is rejected.\n`,
    });
    await service.until("gated", rejected, "failed");

    const cancelled = await waiting();
    expect(await run("workflow", "cancel", cancelled, "--url", service.url("workflow"))).toMatchObject({
      code: 0,
      stdout: `The run ${cancelled} is being cancelled.\n`,
    });
    await service.until("gated", cancelled, "cancelled");
    expect(await run("workflow", "cancel", cancelled)).toMatchObject({
      code: 1,
      stderr: "The workflow service refused: The run has ended\n",
    });
    expect(await run("workflow", "cancel", "wrun_nope")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("No deployed workflow has the run wrun_nope"),
    });
    expect(await run("workflow", "cancel", "wrun_nope", "--workflow", "gated")).toMatchObject({
      code: 1,
      stderr: "The workflow service refused: Run not found\n",
    });
  });

  it("end with 69 if no service runs, and with 64 for values that are not a JSON object", async () => {
    expect(await run("workflow", "approve", "wrun_x")).toMatchObject({
      code: 69,
      stderr: expect.stringContaining("No workflow service runs"),
    });
    const away = { cwd: folder.path, env: { WORKFLOW_SERVICE_TOKEN: "token" } };
    expect(await runCommand(["workflow", "cancel", "wrun_x", "--url", "http://127.0.0.1:9"], away)).toMatchObject({
      code: 69,
      stderr: "The workflow service at http://127.0.0.1:9 cannot be reached\n",
    });
    expect(await run("workflow", "approve", "wrun_x", "--values", "[1]")).toMatchObject({
      code: 64,
      stderr: "Option --values must be a JSON object\n",
    });
  });
});

describe("portico doctor", () => {
  it("reports every broken definition with its positions, and bindings of unknown workflows", async () => {
    folder.deploy("broken.yaml", broken);
    folder.deploy("fine.json", fine);
    const bindings = [{ id: "b1", workflowId: "nope" }];
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify({ workflow: { bindings } }));
    const { code, stdout } = await run("doctor");
    expect(code).toBe(1);
    expect(stdout).toMatch(/WRONG {2}workflow definition broken\.yaml: 3:11: .*; 6:\d+: /);
    expect(stdout).toContain('WRONG  binding b1: no usable definition has the id "nope"');
  });

  it("counts those that are fine", async () => {
    folder.deploy("one.json", fine);
    folder.deploy("sorted/two.json", fine);
    const { code, stdout } = await run("doctor");
    expect([code, stdout]).toEqual([0, expect.stringContaining("ok     workflows: all 2 definitions are valid")]);
  });
});
