import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { answerEvents, type ScriptedAnswer } from "../../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { type McpHttpServer, startMcpHttpServer } from "../../harness/mcp-http-server.ts";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { events, json } from "../../harness/upstream-answers.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 60_000 });

const TOKEN = "owner-token-0123456789";
const KEY = "the-key-of-the-provider";
const GITHUB = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
const agents = {
  helper: { name: "Helper", provider: "main", model: "large", tools: ["corner/greet", "SendUserMessage"] },
  careful: {
    name: "Careful",
    provider: "main",
    model: "large",
    tools: ["corner/greet"],
    toolPolicy: { tools: { "corner/greet": "ask" } },
  },
};

const folder = temporaryFolder();
let upstream: FakeUpstream;
let corner: McpHttpServer;
let service: PorticoProcess;
beforeAll(async () => {
  [upstream, corner] = await Promise.all([startFakeUpstream(), startMcpHttpServer()]);
  for (const [id, agent] of Object.entries(agents)) {
    mkdirSync(join(folder.path, "agents", id), { recursive: true });
    writeFileSync(join(folder.path, "agents", id, "agent.json"), JSON.stringify(agent));
  }
  service = await startPortico({
    cwd: folder.path,
    config: {
      shutdownGraceMs: 100,
      agent: { tokens: [{ token: TOKEN, userId: "ada", role: "owner" }] },
      providers: [{ id: "main", protocol: "messages", baseUrl: upstream.baseUrl, credential: KEY, models: ["large"] }],
      mcpServers: { corner: { url: corner.url } },
    },
  });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await Promise.all([upstream?.close(), corner?.close()]);
  folder.remove();
});
beforeEach(() => upstream.reset());

const run = (...args: string[]) => runCommand(["agent", ...args], { cwd: folder.path });
const greet = (name: string) => ({ id: `call_${name.slice(0, 5)}`, name: "corner_greet", input: { name } });
const answers = (...given: ScriptedAnswer[]) =>
  upstream.answerNext(...given.map((answer) => events(answerEvents("messages", answer))));
async function call(method: string, path: string, body?: object) {
  const headers = { "x-agent-service-token": TOKEN, "content-type": "application/json", prefer: "wait=30" };
  const response = await fetch(service.url("agent") + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  return (await response.json()) as any;
}
const ask = (agent: string, prompt: string, conversationId?: string) =>
  call("POST", `/api/agents/${agent}/ask`, { prompt, ...(conversationId !== undefined && { conversationId }) });

describe("portico agent record", () => {
  it("writes a file that portico agent test passes: the messages, the answers of model and tools, and how the turns ended", async () => {
    answers(
      { text: "I look.", calls: [greet("Ada"), { id: "call_say", name: "SendUserMessage", input: { text: "Soon" } }] },
      { text: "She was greeted" },
      { calls: [{ ...greet("none"), input: {} }] },
      { text: "So f", stop: "max_tokens" },
    );
    const { runId, conversationId } = await ask("helper", "Greet Ada");
    expect((await ask("helper", "Again", conversationId)).runId).toBe(runId);
    expect(await run("record", runId, "--out", "recorded.yaml")).toEqual({ code: 0, stdout: "", stderr: "" });
    const written = readFileSync(join(folder.path, "recorded.yaml"), "utf8");
    const usage = { input: 7, output: 11 };
    const greeted = { tool: "corner/greet", arguments: { name: "Ada" } };
    const said = { tool: "SendUserMessage", arguments: { text: "Soon" } };
    const ungreeted = { tool: "corner/greet", arguments: {} };
    expect(parse(written)).toEqual({
      agent: "helper",
      cases: [
        {
          name: `like ${runId}`,
          messages: [
            { text: "Greet Ada", expect: { status: "completed", end: "completed", output: "She was greeted" } },
            "Again",
          ],
          model: [
            { text: "I look.", calls: [greeted, said], usage },
            { text: "She was greeted", usage },
            { calls: [ungreeted], usage },
            { text: "So f", usage, stop: "max_tokens" },
          ],
          tools: { "corner/greet": [{ output: "Hello Ada" }, { error: expect.stringContaining("name") }] },
          expect: { status: "completed", end: "max_tokens", output: "So f", calls: [greeted, said, ungreeted] },
        },
      ],
    });
    expect(await run("test", "recorded.yaml")).toMatchObject({ code: 0, stdout: expect.stringContaining("1 passed, 0 failed") });
    expect((await run("record", runId)).stdout).toBe(written);
    expect(await run("record", runId, "--out", "recorded.yaml")).toMatchObject({ code: 73 });
  });

  it("masks the secrets of the configuration and credentials of usual forms, also in the results of tools", async () => {
    const input = { name: `${KEY} and ${GITHUB}` };
    const withPassword = { id: "call_other", name: "corner_greet", input: { name: "Ada", password: "hunter2" } };
    answers({ calls: [{ ...greet("x"), input }, withPassword] }, { text: "It is Bearer abc.def" });
    const { runId } = await ask("helper", `Use ${GITHUB}`);
    const { stdout } = await run("record", runId);
    expect(stdout).toMatch(/^# Secrets are masked/);
    for (const secret of [KEY, GITHUB, "hunter2", "abc.def"]) expect(stdout).not.toContain(secret);
    const [recorded] = parse(stdout).cases;
    expect(recorded).toMatchObject({
      messages: ["Use ***"],
      model: [
        { calls: [{ arguments: { name: "*** and ***" } }, { arguments: { password: "***" } }] },
        { text: "It is Bearer ***" },
      ],
      tools: { "corner/greet": [{ output: "Hello *** and ***" }, { error: expect.any(String) }] },
    });
    writeFileSync(join(folder.path, "masked.yaml"), stdout);
    expect((await run("test", "masked.yaml")).code).toBe(0);
  });

  it("repeats decisions about calls, and refusals of the provider", async () => {
    answers({ calls: [greet("Ada"), greet("Bob")] });
    upstream.answerNext(json(401, { type: "error", error: { type: "authentication_error", message: "No such key" } }));
    const asking = ask("careful", "Greet both");
    const waiting = await vi.waitFor(async () => {
      const { approvals } = await call("GET", "/api/approvals");
      expect(approvals).toHaveLength(2);
      return approvals as { runId: string; callId: string; arguments: { name: string } }[];
    }, 10_000);
    const { runId } = waiting[0]!;
    expect(await run("record", runId)).toMatchObject({ code: 1, stderr: expect.stringContaining("has not ended") });
    const bodies = { Ada: { decision: "approve", arguments: { name: "Eve" }, comment: "Her" }, Bob: { decision: "reject" } };
    for (const { callId, arguments: args } of waiting)
      await call("POST", `/api/runs/${runId}/approvals/${encodeURIComponent(callId)}`, bodies[args.name as "Ada" | "Bob"]);
    await asking;
    await vi.waitFor(async () => expect((await call("GET", `/api/runs/${runId}`)).status).toBe("failed"), 10_000);
    const { stdout } = await run("record", runId);
    const { tools, cases } = parse(stdout);
    expect(tools).toEqual({ "corner/greet": { requiresConfirmation: true } });
    expect(cases[0]).toMatchObject({
      model: [
        { calls: [{ arguments: { name: "Ada" } }, { arguments: { name: "Bob" } }] },
        { error: { kind: "invalid-request" } },
      ],
      tools: { "corner/greet": { output: "Hello Eve" } },
      approvals: { "corner/greet": [bodies.Ada, "reject"] },
      expect: {
        status: "failed",
        error: { code: "model_refused" },
        calls: [{ arguments: { name: "Eve" } }, { arguments: { name: "Bob" } }],
      },
    });
    writeFileSync(join(folder.path, "decided.yaml"), stdout);
    expect(await run("test", "decided.yaml")).toMatchObject({ code: 0, stdout: expect.stringContaining("1 passed, 0 failed") });
  });

  it("records the chosen branch of a conversation, in which an answer was made again", async () => {
    answers({ text: "First" }, { calls: [greet("Ada")] }, { text: "Second" }, { text: "Third" });
    const { runId, conversationId } = await ask("helper", "Count");
    const again = await runCommand(["ask", "helper", "--conversation", conversationId, "--regenerate", "last"], {
      cwd: folder.path,
    });
    expect(again).toMatchObject({ code: 0, stderr: "" });
    await ask("helper", "Go on", conversationId);
    const { stdout } = await run("record", runId);
    expect(parse(stdout).cases[0]).toMatchObject({
      messages: [{ text: "Count", expect: { output: "Second" } }, "Go on"],
      model: [{ calls: [{ tool: "corner/greet" }] }, { text: "Second" }, { text: "Third" }],
      expect: { output: "Third", calls: [{ tool: "corner/greet" }] },
    });
    writeFileSync(join(folder.path, "branch.yaml"), stdout);
    expect((await run("test", "branch.yaml")).code).toBe(0);
  });

  it("refuses runs that cases cannot repeat, and unknown runs", async () => {
    upstream.answerNext(events(answerEvents("messages", { text: "half" }).slice(0, -2)));
    const { runId } = await ask("helper", "Break");
    expect(await run("record", runId)).toEqual({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("A turn failed in a way that cases cannot repeat: broken_answer"),
    });
    expect(await run("record", "run_gone")).toMatchObject({ code: 1, stderr: expect.stringContaining("refused") });
    expect(await run("record", runId, "--url", "http://127.0.0.1:1")).toMatchObject({ code: 69 });
  });
});
