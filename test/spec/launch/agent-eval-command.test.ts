import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { answerEvents, type ScriptedAnswer } from "../../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { openCommand, runCommand, temporaryFolder } from "../../harness/portico-process.ts";
import { events, never } from "../../harness/upstream-answers.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 60_000 });

const folder = temporaryFolder();
let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
  const agent = { name: "Helper", instructions: "Be short.", provider: "gone", model: "gone", tools: ["find"] };
  write("agents/helper/agent.json", agent);
  const provider = { protocol: "messages", baseUrl: upstream.baseUrl, credential: "sk-upstream-key" };
  write("portico.config.json", {
    prices: { currency: "EUR", models: [{ model: "large", from: "2026-01-01", input: 1_000_000, output: 1_000_000 }] },
    providers: [
      { ...provider, id: "main", models: ["large", "small"] },
      { ...provider, id: "other", models: ["small"] },
    ],
  });
});
afterAll(async () => {
  await upstream?.close();
  folder.remove();
});
beforeEach(() => upstream.reset());

function write(name: string, content: object): void {
  writeFileSync(join(folder.path, name), JSON.stringify(content));
}
const evaluate = (...args: string[]) => runCommand(["agent", "eval", "cases.json", ...args], { cwd: folder.path });
const answers = (...given: ScriptedAnswer[]) =>
  upstream.answerNext(...given.map((answer) => events(answerEvents("messages", answer))));
const says = (text: string) => ({ name: text, messages: ["Hello"], model: [{ text }], expect: { output: text } });

describe("portico agent eval", () => {
  it("runs the cases with each model as often as it is told, and prints pass rates, calls, tokens, costs and durations", async () => {
    const finds = { calls: [{ tool: "find", arguments: { of: "x" } }] };
    const tools = { find: { output: "Here" } };
    write("cases.json", {
      agent: "helper",
      cases: [{ name: "finds", messages: ["Hello"], model: [finds, { text: "Found" }], tools, expect: { output: "Found" } }],
    });
    const find = { calls: [{ id: "call_1", name: "find", input: { of: "x" } }] };
    answers(find, { text: "Found" }, find, { text: "Lost" }, { text: "Found" }, { text: "Found" });
    const models = ["--models", "main/large,other/small,scripted"];
    const { code, stdout, stderr } = await evaluate(...models, "--repeat", "2", "--parallel", "1", "--json");
    expect([code, stderr]).toEqual([1, ""]);
    const { isComplete, models: summary, attempts } = JSON.parse(stdout);
    expect(isComplete).toBe(true);
    const duration = { medianMs: expect.any(Number), p95Ms: expect.any(Number) };
    const used = { inputTokens: 28, outputTokens: 44 };
    expect(summary).toEqual([
      {
        ...{ model: "main/large", attempts: 2, passed: 1, passRate: 0.5, modelCalls: 4, toolCalls: 2 },
        ...{ ...used, cost: 72, currency: "EUR", ...duration },
      },
      {
        ...{ model: "other/small", attempts: 2, passed: 2, passRate: 1, modelCalls: 2, toolCalls: 0 },
        ...{ inputTokens: 14, outputTokens: 22, ...duration },
      },
      { model: "scripted", attempts: 2, passed: 2, passRate: 1, modelCalls: 4, toolCalls: 2, ...duration },
    ]);
    expect(attempts.map(({ model, attempt, isOk }: any) => [model, attempt, isOk])).toEqual([
      ["main/large", 1, true],
      ["main/large", 2, false],
      ["other/small", 1, true],
      ["other/small", 2, true],
      ["scripted", 1, true],
      ["scripted", 2, true],
    ]);
    expect(attempts[1]).toMatchObject({
      ...{ file: "cases.json", name: "finds", differences: ['output: expected "Found", got "Lost"'] },
      found: { status: "completed", end: "completed", output: "Lost", calls: [{ tool: "find" }], modelCalls: 2 },
    });
    const bodies = await Promise.all(upstream.requests.map(async (request) => JSON.parse((await request.bytes()).toString())));
    expect(bodies.map(({ model }) => model)).toEqual(["large", "large", "large", "large", "small", "small"]);
    expect(JSON.stringify(bodies[0].system)).toContain("Be short.");
    expect(JSON.stringify(bodies[1].messages)).toContain("Here");
  });

  it("prints a table, and the differences of the first failed attempt; --pass-rate says how many must pass", async () => {
    write("cases.json", { agent: "helper", cases: [says("Yes")] });
    const asked = ["--models", "large", "--repeat", "4", "--parallel", "1"];
    const some = [{ text: "Yes" }, { text: "No" }, { text: "Yes" }, { text: "Maybe" }];
    answers(...some, ...some);
    const { code, stdout, stderr } = await evaluate(...asked, "--pass-rate", "50");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(/^MODEL +PASSED +MODEL CALLS +TOOL CALLS +INPUT TOKENS +OUTPUT TOKENS +COST +MEDIAN +95 % WITHIN$/),
      expect.stringMatching(/^large +2\/4 \(50 %\) +4 +0 +28 +44 +72 EUR +[\d.]+m?s +[\d.]+m?s$/),
      "FAILED  large: cases.json: Yes (2 of 4)",
      '        output: expected "Yes", got "No"',
      "",
    ]);
    expect((await evaluate(...asked, "--pass-rate", "51")).code).toBe(1);
  });

  it("runs as many cases at once as --parallel says", async () => {
    write("cases.json", { agent: "helper", cases: [says("Yes")] });
    upstream.answerAll(never());
    await using command = openCommand(["agent", "eval", "cases.json", "--models", "large", "--repeat", "9", "--parallel", "3"], {
      cwd: folder.path,
    });
    await upstream.request(3);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect([upstream.requests.length, upstream.openExchanges]).toEqual([3, 3]);
    command.signal("SIGINT");
    await command.ended;
  });

  it("stops on Ctrl-C: it aborts the calls in progress, prints what has ended, and ends with 130", async () => {
    write("cases.json", { agent: "helper", cases: [says("Yes")] });
    answers({ text: "Yes" });
    upstream.answerAll(never());
    await using command = openCommand(
      ["agent", "eval", "cases.json", "--models", "large", "--repeat", "3", "--parallel", "1", "--json"],
      { cwd: folder.path },
    );
    await upstream.request(2);
    command.signal("SIGINT");
    const { code, stdout, stderr } = await command.ended;
    expect([code, stderr]).toEqual([130, "Stopped: 1 of 3 attempts have ended.\n"]);
    const { isComplete, models, attempts } = JSON.parse(stdout);
    expect([isComplete, models[0].attempts, attempts.length]).toEqual([false, 1, 1]);
    await upstream.quiet();
    expect(upstream.requests.length).toBe(2);
  });

  it.each([
    [
      "a model that several providers list",
      ["--models", "small"],
      'Several providers list the model "small": write PROVIDER/MODEL',
    ],
    ["a model that no provider lists", ["--models", "huge"], 'No provider lists the model "huge"'],
    ["an empty name", ["--models", "large,"], "Option --models must be names"],
    ["no repetition", ["--models", "large", "--repeat", "0"], "Option --repeat must be a whole number from 1 to 100"],
    [
      "too many cases at once",
      ["--models", "large", "--parallel", "33"],
      "Option --parallel must be a whole number from 1 to 32",
    ],
    ["a rate above 100", ["--models", "large", "--pass-rate", "101"], "Option --pass-rate must be"],
  ])("refuses %s with 64", async (_what, args, message) => {
    write("cases.json", { agent: "helper", cases: [says("Yes")] });
    expect(await evaluate(...args)).toEqual({ code: 64, stdout: "", stderr: expect.stringContaining(message) });
    expect(upstream.requests.length).toBe(0);
  });

  it("refuses more than 10,000 attempts with 64, before it calls a model", async () => {
    write("cases.json", { agent: "helper", cases: Array.from({ length: 101 }, (_, at) => says(`Yes ${at}`)) });
    const { code, stderr } = await evaluate("--models", "large", "--repeat", "100");
    expect([code, stderr, upstream.requests.length]).toEqual([64, expect.stringContaining("There are 10100 attempts"), 0]);
  });
});
