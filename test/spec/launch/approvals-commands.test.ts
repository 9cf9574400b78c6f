import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AgentClient, connectAgent, type Query } from "@portico/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 120_000 });

const MEMBER = "member-token-0123456789";
const agents = {
  boss: { name: "Boss", tools: ["DelegateToAgent"], toolPolicy: { tools: { DelegateToAgent: "ask" } } },
  worker: { name: "Worker" },
};
const TASK = { agentId: "worker", prompt: "Count sheep" };

let folder: ReturnType<typeof temporaryFolder>;
let service: PorticoProcess;
let client: AgentClient;
beforeEach(async () => {
  folder = temporaryFolder();
  for (const [id, agent] of Object.entries(agents)) {
    mkdirSync(join(folder.path, "agents", id), { recursive: true });
    writeFileSync(join(folder.path, "agents", id, "agent.json"), JSON.stringify(agent));
  }
  const tokens = [{ token: MEMBER, userId: "mia", role: "member" }];
  service = await startPortico({ cwd: folder.path, config: { agent: { tokens }, shutdownGraceMs: 100 } });
  client = connectAgent({ baseURL: service.url("agent"), token: MEMBER });
});
afterEach(async () => {
  client.close();
  await service[Symbol.asyncDispose]();
  folder.remove();
});

const run = (...args: string[]) => runCommand(["approvals", ...args], { cwd: folder.path });
/** The run and the call of a query whose call waits. */
const asked = async (prompt = "DelegateToAgent") => {
  const query = client.submit({ agentId: "boss", prompt });
  for await (const message of query)
    if (message.type === "approval") return { query, runId: (await query.started)!.runId!, callId: message.content.callId };
  throw new Error("No call waits");
};
/** What the model was told. */
const resultOf = async (query: Query) => {
  for await (const { type, content } of query)
    if (type === "tool_result") return (content as { result: { content: { text: string }[] } }).result.content[0]!.text;
  return undefined;
};

describe("portico approvals", () => {
  it("alone lists the calls that wait, of all users, for people and for programs", async () => {
    expect(await run()).toEqual({ code: 0, stdout: "", stderr: "No call waits for a decision.\n" });
    const { query, runId, callId } = await asked();
    const list = await run();
    expect([list.code, list.stderr]).toEqual([0, ""]);
    expect(list.stdout).toMatch(/^DelegateToAgent.*: \w+ risk\n {2}Agent: +boss, for mia\n/);
    expect(list.stdout).toMatch(/ {2}Arguments: +\{.*"prompt":"DelegateToAgent"/);
    expect(list.stdout).toMatch(new RegExp(`\n  portico approvals approve ${runId} ${callId}\n`));
    const [one, ...others] = JSON.parse((await run("--json")).stdout);
    expect([one, others]).toMatchObject([{ runId, callId, userId: "mia", toolName: "DelegateToAgent" }, []]);
    expect(JSON.parse((await run("list", "--json", "--url", service.url("agent"))).stdout)).toEqual([one]);
    query.abort();
  });

  it("shows hidden characters of arguments as escapes: they cannot change what a person reads", async () => {
    const prompt = "DelegateToAgent to \u202egro.live\u202c, \u{e0041}\u200b, \u2028 and ❤️";
    const { query } = await asked(prompt);
    const [list, json] = [await run(), await run("--json")];
    for (const { stdout } of [list, json]) {
      expect(stdout).not.toMatch(/[\u202e\u202c\u200b\u2028]|\u{e0041}/u);
      expect(stdout).toContain("to \\u202egro.live\\u202c, \\udb40\\udc41\\u200b, \\u2028 and ❤️");
    }
    expect(JSON.parse(json.stdout)[0].arguments.prompt).toBe(prompt);
    query.abort();
  });

  it("approve lets the call run, with the given arguments and once", async () => {
    const { query, runId, callId } = await asked();
    const decided = await run("approve", runId, callId, "--arguments", JSON.stringify(TASK), "--comment", "Go on");
    expect(decided).toEqual({ code: 0, stdout: `The call ${callId} of the run ${runId} is approved.\n`, stderr: "" });
    expect(await resultOf(query)).toContain("Count sheep");
    expect((await query.ended).status).toBe("completed");
    expect(await run("approve", runId, callId)).toEqual({
      ...{ code: 1, stdout: "" },
      stderr: "The agent service refused: The call is decided already, or its turn has ended\n",
    });
  });

  it("reject tells the model", async () => {
    const { query, runId, callId } = await asked();
    const decided = await run("reject", runId, callId, "--comment", "Not today");
    expect(decided).toEqual({ code: 0, stdout: `The call ${callId} of the run ${runId} is rejected.\n`, stderr: "" });
    expect(await resultOf(query)).toBe("A person rejected this call: Not today");
  });

  it("approve --standing grants a consent, which is listed and revoked", async () => {
    expect(await run("consents")).toEqual({ code: 0, stdout: "", stderr: "There are no standing consents.\n" });
    const { query, runId, callId } = await asked();
    expect((await run("approve", runId, callId, "--standing")).code).toBe(0);
    await query.ended;
    expect((await client.submit({ agentId: "boss", prompt: "DelegateToAgent" }).ended).status).toBe("completed");
    const [{ id }] = JSON.parse((await run("consents", "--json")).stdout);
    const [head, line] = (await run("consents")).stdout.trimEnd().split("\n");
    expect(head).toMatch(/^CONSENT ID +USER +AGENT +TOOL +GRANTED$/);
    expect(line).toMatch(new RegExp(`^${id} +mia +boss +DelegateToAgent +\\d{4}-`));
    expect(await run("revoke", id)).toEqual({ code: 0, stdout: `The consent ${id} is revoked.\n`, stderr: "" });
    expect(await run("revoke", id)).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no such consent") });
    (await asked()).query.abort();
  });

  it.each([
    [["approve", "run_x", "y", "--arguments", "[]"], "Option --arguments must be a JSON object\n"],
    [["approve", "run_x", "y", "--arguments", "{}", "--standing"], "Use either --arguments or --standing, not both\n"],
    [["reject", "run_x", ".."], '".." is not an ID\n'],
    [["reject", "run_x"], "Missing argument CALL (see portico approvals reject --help)\n"],
    [["approv"], 'Unknown command "approv"; did you mean "approve"? (see portico approvals --help)\n'],
    [["--jsn"], "Unknown option --jsn; did you mean --json? (see portico approvals list --help)\n"],
  ])("%j is a usage error", async (args, stderr) => {
    expect(await run(...args)).toEqual({ code: 64, stdout: "", stderr });
  });

  it("says that a call is missing, and that no service runs", async () => {
    expect(await run("approve", "run_x", "a/b c")).toMatchObject({ code: 1, stderr: expect.stringContaining("no such call") });
    await service.stop();
    expect((await run()).code).toBe(69);
    expect((await run("--url", "http://127.0.0.1:1")).stderr).toBe("The agent service at http://127.0.0.1:1 cannot be reached\n");
  });
});
