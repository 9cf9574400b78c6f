import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CommandOptions, openCommand, runCommand, runPortico } from "../../harness/portico-process.ts";
import { type WorkflowFolder, workflowFolder } from "../../harness/workflow-process.ts";

const echo = {
  name: "Say it again",
  parameters: { type: "object", properties: { count: { type: "integer" }, ticket: { type: "string" } } },
  nodes: { one: { type: "transform", name: "Repeat", with: { value: "${{ parameters }}" } } },
  outputs: { said: "${{ nodes.one.output }}" },
  search: { parameters: ["count"], outputs: ["said.count"] },
};
const gated = {
  nodes: {
    first: { type: "transform", with: { value: 1 } },
    ok: {
      type: "human_gate",
      needs: ["first"],
      with: {
        title: "Go on?",
        message: "Shall it?\nReally\u009b2J",
        form: { type: "object", required: ["severity"], properties: { severity: { type: "integer" } } },
      },
    },
    done: { type: "transform", needs: ["ok"], with: { value: "${{ nodes.ok.output.values.severity }}" } },
  },
  outputs: { severity: "${{ nodes.done.output }}" },
};
const failing = { nodes: { bad: { type: "fail", with: { message: "It cannot be" } } } };

// A test runs several commands, one after another, each in a process of its own.
vi.setConfig({ testTimeout: 90_000 });

let folder: WorkflowFolder;
beforeEach(() => {
  folder = workflowFolder();
});
afterEach(() => folder[Symbol.dispose]());

const runWith = (options: Omit<CommandOptions, "cwd">, ...args: string[]) =>
  runPortico(["workflow", ...args], { ...options, cwd: folder.path });
const run = (...args: string[]) => runCommand(["workflow", ...args], { cwd: folder.path });
const open = (...args: string[]) => openCommand(["workflow", ...args], { cwd: folder.path });
const jsonLines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly event: string; readonly data: any });

describe("portico workflow list, runs and show", () => {
  it("show what is deployed, what ran, and a run with its nodes and outputs, for people and for programs", async () => {
    await using service = await folder.start("workflow");
    expect(await run("list")).toEqual({ code: 0, stdout: "", stderr: "No workflows are deployed.\n" });
    folder.deploy("echo.json", echo);
    folder.deploy("failing.json", failing);
    await expect.poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.length).toBe(2);
    const older = await service.trigger("echo", { count: 1 });
    await service.until("echo", older, "completed");
    const newer = await service.trigger("echo", { count: 2 });
    await service.until("echo", newer, "completed");

    const list = await run("list");
    expect([list.code, list.stderr]).toEqual([0, ""]);
    const [head, first, second] = list.stdout.trimEnd().split("\n");
    expect(head).toMatch(/^WORKFLOW ID +NAME +NODES +LAST RUN +STATUS$/);
    expect(first).toMatch(new RegExp(`^echo +Say it again +1 +${newer} +completed$`));
    expect(second).toMatch(/^failing +failing +1$/);
    folder.deploy("broken.yaml", "nodes:\n  a: { type: transfrom }\n  b: 1\n");
    await expect.poll(async () => (await service.call("GET", "/api/workflows")).body.broken.length).toBe(1);
    expect(await run("list")).toEqual({
      code: 0,
      stdout: list.stdout,
      stderr: expect.stringMatching(/^broken\.yaml:2:14: .*"transfrom".* \(2 problems; the file is not used\)\n$/),
    });
    const { body } = await service.call("GET", "/api/workflows");
    expect(body).toMatchObject({ broken: [{ dslPath: "broken.yaml" }], editable: false });
    expect(JSON.parse((await run("list", "--json")).stdout)).toEqual(body);

    const runs = (await run("runs", "echo")).stdout.trimEnd().split("\n");
    expect(runs.map((line) => line.split(/ +/)[0])).toEqual(["RUN", newer, older]);
    expect(runs[1]).toMatch(/ completed .* 1\/1$/);
    const found = async (...flags: string[]) =>
      JSON.parse((await run("runs", "echo", "--json", ...flags)).stdout) as { runs: { runId: string }[]; next?: string };
    const ids = async (...flags: string[]) => (await found(...flags)).runs.map(({ runId }) => runId);
    const search = "/api/workflow/runs/search?workflowId=echo";
    expect(await found()).toEqual((await service.call("GET", search)).body);
    const { next, runs: newest } = await found("--limit", "1");
    expect(newest).toMatchObject([{ runId: newer }]);
    expect((await service.call("GET", `${search}&cursor=${encodeURIComponent(next!)}`)).body.runs).toMatchObject([
      { runId: older },
    ]);
    expect(await ids()).toEqual([newer, older]);
    expect(await ids("--limit", "1")).toEqual([newer]);
    expect(await ids("--status", "failed")).toEqual([]);
    expect(await ids("--since", "1h", "--param", "count=1")).toEqual([older]);
    expect(await ids("--param", "count=2", "--output", "said.count=2")).toEqual([newer]);
    expect(await ids("--until", "2020-01-01")).toEqual([]);
    const bad = await service.trigger("failing");
    await service.until("failing", bad, "failed");
    expect((await run("runs", "--text", "cannot BE")).stdout).toMatch(
      new RegExp(`^RUN ID +WORKFLOW +STATUS [^]*\n${bad} +failing +failed [^\n]*\n$`),
    );
    const [{ version }] = JSON.parse((await run("versions", "echo", "--json")).stdout).versions;
    expect(await ids("--definition", version)).toEqual([newer, older]);

    const page = await run("show", newer);
    expect(page.code).toBe(0);
    expect(page.stdout).toMatch(new RegExp(`^Run: +${newer}\nWorkflow: +echo\nStatus: +completed\nStarted: `));
    expect(page.stdout).toMatch(/\none +transform +completed +1 +\d+ms\n/);
    expect(page.stdout).toMatch(/\nOutputs:\n\{\n {2}"said": \{\n {4}"count": 2\n/);
    const detail = (await service.call("GET", `/api/workflow/echo/runs/${newer}`)).body;
    expect(JSON.parse((await run("show", newer, "--workflow", "echo", "--json")).stdout)).toEqual(detail);
  });

  it("end with 1 for unknown workflows and runs, and with 64 for unknown flags", async () => {
    folder.deploy("echo.json", echo);
    await using _service = await folder.start("workflow");
    expect(await run("runs", "nope")).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("not found") });
    expect(await run("show", "wrun_nope")).toMatchObject({ code: 1, stderr: expect.stringContaining("wrun_nope") });
    expect((await run("runs", "echo", "--status", "done")).stderr).toContain("--status must be one of running, waiting_human,");
    for (const flags of [
      ["--limit", "0"],
      ["--since", "yesterday"],
      ["--until", "x"],
      ["--param", "count"],
    ])
      expect(await run("runs", "echo", ...flags)).toMatchObject({ code: 64, stdout: "" });
    expect(await run("runs", "echo", "--param", "ticket=x")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("ticket"),
    });
  });
});

describe("portico workflow versions", () => {
  it("prints each version of a definition with its runs, and the paths that changed", async () => {
    await using service = await folder.start("workflow");
    folder.deploy("echo.json", echo);
    await expect.poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.length).toBe(1);
    await service.until("echo", await service.trigger("echo", {}), "completed");
    folder.deploy("echo.json", { ...echo, name: "Say it twice" });
    await expect.poll(async () => (await service.call("GET", "/api/workflow/echo/definition")).body.name).toBe("Say it twice");
    const { code, stdout, stderr } = await run("versions", "echo");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^[0-9a-f]{12}  0 runs, deployed$/),
      "    ~ $.name",
      expect.stringMatching(/^[0-9a-f]{12}  1 run, \S+Z to \S+Z$/),
    ]);
    const { body } = await service.call("GET", "/api/workflow/echo/versions");
    expect(JSON.parse((await run("versions", "echo", "--json")).stdout)).toEqual(body);
    expect((await run("versions", "gone")).code).toBe(1);
  });
});

describe("portico workflow start", () => {
  it("prints the run's id alone, and takes values as JSON, unless a text is asked for or they would be changed", async () => {
    folder.deploy("echo.json", echo);
    await using service = await folder.start("workflow");
    const values = [
      "ticket=17",
      "count=3",
      "list=[1]",
      "text=007",
      "version=1.10",
      "big=12345678901234567890",
      'quoted="5"',
      "empty=",
    ];
    const { code, stdout, stderr } = await run("start", "echo", ...values.flatMap((value) => ["--param", value]));
    expect([code, stderr]).toEqual([0, ""]);
    const { finalOutputs } = await service.until("echo", stdout.trim(), "completed");
    expect(stdout).toMatch(/^wrun_\w+\n$/);
    expect(finalOutputs.said).toEqual({
      ...{ ticket: "17", count: 3, list: [1], text: "007", version: "1.10", big: "12345678901234567890", quoted: "5", empty: "" },
    });
  });

  it("reads a file or standard input; parameters of the command line override those of the same name", async () => {
    folder.deploy("echo.json", echo);
    writeFileSync(join(folder.path, "given.json"), '{ "a": 1, "count": 2 }');
    await using service = await folder.start("workflow");
    const said = async (started: Promise<{ readonly stdout: string }>) => {
      const { runId, ...rest } = JSON.parse((await started).stdout) as { runId: string };
      expect(rest).toEqual({ workflowId: "echo", status: "started" });
      return (await service.until("echo", runId, "completed")).finalOutputs.said;
    };
    expect(await said(run("start", "echo", "--json", "--input", "given.json", "--param", "count=7"))).toEqual({ a: 1, count: 7 });
    expect(await said(runWith({ input: '{ "b": 2 }' }, "start", "echo", "--json", "--input", "-"))).toEqual({ b: 2 });
  });

  it("gets the same run for the same --idempotency-key, and refuses an invalid key", async () => {
    folder.deploy("echo.json", echo);
    await using _service = await folder.start("workflow");
    const start = (key: string, count = 1) => run("start", "echo", "--param", `count=${count}`, "--idempotency-key", key);
    const [first, again, other] = [await start("k"), await start("k"), await start("l")];
    expect([first.code, again.stdout]).toEqual([0, first.stdout]);
    expect(other.stdout).not.toBe(first.stdout);
    expect(await start("k", 2)).toMatchObject({ code: 1, stderr: expect.stringContaining("another body") });
    expect(await start("a,b")).toMatchObject({ code: 64, stderr: expect.stringContaining("--idempotency-key must have") });
  });

  it("refuses unknown parameters, and prints the errors of the workflow's schema", async () => {
    folder.deploy("echo.json", echo);
    writeFileSync(join(folder.path, "list.json"), "[1]");
    await using _service = await folder.start("workflow");
    expect(await run("start", "echo", "--param", "=x")).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("name=value"),
    });
    expect(await run("start", "echo", "--param", "a=1", "--param", "a=2")).toMatchObject({
      code: 64,
      stderr: 'Option --param names "a" twice\n',
    });
    expect(await run("start", "echo", "--input", "list.json")).toMatchObject({
      code: 64,
      stderr: "list.json is not a JSON object\n",
    });
    expect(await run("start", "echo", "--input", "nope.json")).toMatchObject({ code: 66 });
    expect(await run("start", "echo", "--param", "count=many")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^The workflow service refused: .*"\/count"/),
    });
    expect(await run("start", "nope")).toMatchObject({ code: 1, stderr: expect.stringContaining("Workflow not found") });
  });
});

describe("waiting gates", () => {
  it("of all runs are listed with their questions and the commands that decide them", async () => {
    folder.deploy("gated.json", gated);
    await using service = await folder.start("workflow");
    expect(await run("gates")).toEqual({ code: 0, stdout: "", stderr: "No gate waits for a decision.\n" });
    const runs = [await service.trigger("gated"), await service.trigger("gated")];
    for (const runId of runs) await service.until("gated", runId, "waiting_human");
    const listed = jsonLines((await run("gates", "--json")).stdout.replaceAll(/\s*\n\s*/g, ""))[0] as any;
    expect(listed.map((each: any) => [each.runId, each.workflowId, each.gate.nodeId])).toEqual(
      runs.toReversed().map((runId) => [runId, "gated", "ok"]),
    );
    const at = ["--url", service.url("workflow")];
    const { stdout } = await run("gates", ...at);
    expect(stdout).not.toContain("\u009b");
    for (const runId of runs) {
      expect(stdout).toMatch(
        new RegExp(`Go on\\?: Shall it\\?.*\n {2}Workflow: +gated\n {2}Run: +${runId}\n {2}Node: +ok\n {2}Asked: `),
      );
      expect(stdout).toContain(`\n  portico workflow reject ${runId} --node ok ${at.join(" ")}`);
    }
    const approve = /portico (workflow approve .*)/.exec(stdout)![1]!.replace("…", "4");
    expect(approve).toContain("--values '{ \"severity\": 4 }'");
    expect((await run("approve", runs[1]!, "--node", "ok", "--values", '{ "severity": 4 }')).code).toBe(0);
    await service.until("gated", runs[1]!, "completed");
    expect((await run("gates")).stdout).not.toContain(runs[1]);
  });
});

describe("following a run", () => {
  it("prints every node, the decisions at gates and the outputs, and ends with 0 when the run has completed", async () => {
    folder.deploy("gated.json", gated);
    await using _service = await folder.start("workflow");
    await using following = open("start", "gated", "--follow");
    await expect.poll(() => following.stdout(), { timeout: 30_000 }).toContain("portico workflow reject");
    const [head, ...before] = following.stdout().trimEnd().split("\n");
    const runId = /^Run (wrun_\w+) of gated: gated, 3 nodes$/.exec(head!)![1]!;
    expect(before).toEqual([
      "  started    first  transform",
      expect.stringMatching(/^ {2}completed {2}first {2}\d+ms$/),
      "  started    ok  human_gate",
      "  waiting    ok  Go on?: Shall it? Really 2J",
      `             portico workflow approve ${runId} --node ok --values '{ "severity": … }'`,
      `             portico workflow reject ${runId} --node ok`,
    ]);
    expect((await run("show", runId)).stdout).toContain(
      `\nWaiting at ok: Go on?: Shall it? Really 2J\n  portico workflow approve`,
    );
    expect((await run("approve", runId, "--node", "ok", "--values", '{ "severity": 4 }')).code).toBe(0);
    const { code, stdout, stderr } = await following.ended;
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(
      / {2}completed {2}ok .*\n.*\n {2}completed {2}done .*\nThe run has completed\.\n\{\n {2}"severity": 4\n\}\n$/,
    );
  });

  it("ends with 2 when it has failed or was cancelled, and says why", async () => {
    folder.deploy("failing.json", failing);
    folder.deploy("gated.json", gated);
    await using service = await folder.start("workflow");
    const failed = await run("start", "failing", "--follow");
    expect(failed.code).toBe(2);
    // A subscriber that comes after the end of a quick run gets only its end.
    expect(failed.stdout).toMatch(
      / {2}failed {5}bad {2}failed: It cannot be\nError: failed: It cannot be \(node bad\)\nThe run has failed\.\n$/,
    );
    const runId = await service.trigger("gated");
    await using following = open("follow", runId);
    await expect.poll(() => following.stdout(), { timeout: 30_000 }).toContain("reject");
    expect((await run("cancel", runId)).code).toBe(0);
    expect(await following.ended).toMatchObject({ code: 2, stdout: expect.stringMatching(/\nThe run was cancelled\.\n$/) });
  });

  it("with --json prints the events as they are, one per line", async () => {
    folder.deploy("echo.json", echo);
    await using _service = await folder.start("workflow");
    const { code, stdout } = await run("start", "echo", "--param", "text=a\u009b", "--follow", "--json");
    expect([code, stdout.includes("\u009b")]).toEqual([0, false]);
    const events = jsonLines(stdout);
    const { runId } = events[0]!.data;
    const said = { text: "a\u009b" };
    // The run may have been quicker than its follower: then there are only the ends.
    expect(events.filter(({ event }) => !/started|node_start/.test(event))).toEqual([
      {
        event: "workflow:node_complete",
        data: { runId, nodeId: "one", inputs: { value: said }, outputs: said, durationMs: expect.any(Number) },
      },
      { event: "workflow:complete", data: { runId, workflowId: "echo", status: "completed", finalOutputs: { said } } },
    ]);
  });

  it("prints an ended run from its history", async () => {
    folder.deploy("echo.json", echo);
    await using service = await folder.start("workflow");
    const runId = await service.trigger("echo", { count: 1 });
    await service.until("echo", runId, "completed");
    const { code, stdout } = await run("follow", runId);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}completed {2}one {2}\d+ms\nThe run has completed\.\n\{\n/);
    await service.stop();
    await using _next = await folder.start("workflow");
    expect(await run("follow", runId)).toEqual({ code: 0, stdout, stderr: "" });
  });

  it("continues from the history if the service is killed and started at another address, and prints nothing twice", async () => {
    folder.deploy("gated.json", gated);
    const first = await folder.start("workflow");
    const runId = await first.trigger("gated");
    await using following = open("follow", runId, "--json");
    await expect.poll(() => following.stdout(), { timeout: 30_000 }).toContain("workflow:human_gate");
    await first[Symbol.asyncDispose]();
    await expect.poll(() => following.stderr(), { timeout: 30_000 }).toContain("Waiting for it");
    // Without this setting, it would use the port of the first start again.
    await using second = await folder.start("workflow", { env: { PORTICO_WORKFLOW_PORT: "0" } });
    expect(second.url("workflow")).not.toBe(first.url("workflow"));
    expect((await run("approve", runId, "--values", '{ "severity": 4 }')).code).toBe(0);
    const { code, stdout, stderr } = await following.ended;
    expect([code, stderr]).toEqual([0, "The workflow service cannot be reached. Waiting for it…\n"]);
    const told = jsonLines(stdout).map(({ event, data }) => [event, data.nodeId]);
    expect(told.filter(([event]) => event !== "workflow:node_start")).toEqual([
      ["workflow:started", undefined],
      ["workflow:node_complete", "first"],
      ["workflow:human_gate", "ok"],
      ["workflow:node_complete", "ok"],
      ["workflow:node_complete", "done"],
      ["workflow:complete", undefined],
    ]);
  });

  it("leaves the live events to the next reader of the run, and both see its end", async () => {
    folder.deploy("gated.json", gated);
    await using service = await folder.start("workflow");
    const runId = await service.trigger("gated");
    await using first = open("follow", runId);
    await expect.poll(() => first.stdout(), { timeout: 30_000 }).toContain("reject");
    await using second = open("follow", runId);
    await expect.poll(() => second.stdout(), { timeout: 30_000 }).toContain("reject");
    expect((await run("approve", runId, "--values", '{ "severity": 4 }')).code).toBe(0);
    for (const following of [first, second]) {
      const { code, stdout, stderr } = await following.ended;
      expect([code, stderr]).toEqual([0, ""]);
      expect(stdout.match(/ waiting /g)).toHaveLength(1);
      expect(stdout.match(/ completed {2}(?:first|ok|done) /g)).toHaveLength(3);
    }
  });

  it("stops at Ctrl-C: the run continues, and the command to follow it again is printed", async () => {
    folder.deploy("gated.json", gated);
    await using service = await folder.start("workflow");
    const runId = await service.trigger("gated");
    await using following = open("follow", runId, "--url", service.url("workflow"));
    await expect.poll(() => following.stdout(), { timeout: 30_000 }).toContain("reject");
    following.signal("SIGINT");
    expect(await following.ended).toMatchObject({
      code: 130,
      stderr: `The run continues. To follow it again: portico workflow follow ${runId} --url ${service.url("workflow")}\n`,
    });
    expect((await service.until("gated", runId, "waiting_human")).runId).toBe(runId);
  });

  it("ends with 69 where no service runs, and with 1 for a run that is not there", async () => {
    expect(await run("follow", "wrun_x")).toMatchObject({
      code: 69,
      stderr: expect.stringContaining("No workflow service runs"),
    });
    await using _service = await folder.start("workflow");
    expect(await run("follow", "wrun_x")).toMatchObject({ code: 1, stderr: expect.stringContaining("has the run wrun_x") });
  });
});

describe("portico workflow resume and rerun", () => {
  it("print the id of the new run, which goes on, or starts anew with the parameters of the run", async () => {
    folder.deploy("echo.json", echo);
    folder.deploy("failing.json", failing);
    await using service = await folder.start("workflow");
    const failed = await service.trigger("failing", {});
    await service.until("failing", failed, "failed");
    expect((await run("show", failed)).stdout).toContain(`portico workflow resume ${failed}`);
    expect(await run("resume", failed, "--output", "1")).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("--as done"),
    });
    expect(await run("resume", failed, "--as", "maybe")).toMatchObject({ code: 64, stdout: "" });
    expect(await run("resume", failed, "--definition", "newest")).toMatchObject({ code: 64, stdout: "" });
    const planned = await run("resume", failed, "--definition", "current", "--dry-run");
    expect([planned.code, planned.stdout]).toEqual([0, expect.stringMatching(/^Repeated: {2}bad$/m)]);
    const json = await run("resume", failed, "--definition", "current", "--dry-run", "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ repeated: ["bad"], changed: [], added: [], removed: [] });
    const outdated = await run("resume", failed, "--definition", "current", "--plan", "0".repeat(64));
    expect(outdated).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("read the plan again") });
    const [version = ""] = /[0-9a-f]{64}$/m.exec(planned.stdout) ?? [];
    const resumed = await run("resume", failed, "--plan", version, "--from", "bad", "--as", "done", "--output", '{"by":"hand"}');
    expect(resumed).toEqual({ code: 0, stdout: expect.stringMatching(/^wrun_\w+\n$/), stderr: "" });
    const detail = await service.until("failing", resumed.stdout.trim(), "completed");
    expect(detail).toMatchObject({ resumes: failed, nodeResults: { bad: { outputs: { by: "hand" } } } });
    expect(await run("resume", failed)).toMatchObject({ code: 1, stderr: expect.stringContaining(resumed.stdout.trim()) });

    const first = await service.trigger("echo", { count: 1, ticket: "17" });
    await service.until("echo", first, "completed");
    const again = await run("rerun", first, "--param", "count=2");
    expect(again).toEqual({ code: 0, stdout: expect.stringMatching(/^wrun_\w+\n$/), stderr: "" });
    const { finalOutputs } = await service.until("echo", again.stdout.trim(), "completed");
    expect(finalOutputs.said).toEqual({ count: 2, ticket: "17" });

    const less = (await run("rerun", first, "--without", "ticket", "--without", "other", "--param", "count=3")).stdout.trim();
    expect((await service.until("echo", less, "completed")).finalOutputs.said).toEqual({ count: 3 });
  });
});
