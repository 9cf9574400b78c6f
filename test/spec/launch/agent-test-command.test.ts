import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCommand, temporaryFolder } from "../../harness/portico-process.ts";

// A test runs several commands, one after another, each in a process of its own.
vi.setConfig({ testTimeout: 60_000 });

const page = readFileSync(join(import.meta.dirname, "../../../docs/agent-tests.md"), "utf8");
const block = (language: string) => new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)![1]!;

const agent = { name: "Helper", tools: ["find", "pay", "SendUserMessage", "DelegateToAgent"] };
const tools = {
  find: { inputSchema: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] } },
};
const finds = { calls: [{ tool: "find", arguments: { number: 7, of: { kind: "order", year: 2026 } } }] };

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  write("agents/helper/agent.json", agent);
});
afterEach(() => folder.remove());

function write(name: string, content: object | string): void {
  const path = join(folder.path, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
}
const test = (...args: string[]) => runCommand(["agent", "test", ...args], { cwd: folder.path });
/** Runs cases, which get the names `case 0`, `case 1`, … and the message `Hello` if they have none. */
async function run(...cases: object[]) {
  write("cases.json", {
    agent: "helper",
    tools,
    cases: cases.map((each, at) => ({ name: `case ${at}`, messages: ["Hello"], ...each })),
  });
  const { code, stdout, stderr } = await test("cases.json", "--json");
  expect(stderr).toBe("");
  const [result] = JSON.parse(stdout) as [{ file: string; cases: { name: string; isOk: boolean; differences: string[] }[] }];
  expect(result.file).toBe("cases.json");
  expect(code).toBe(result.cases.every(({ isOk }) => isOk) ? 0 : 1);
  return result.cases.map(({ differences }) => differences);
}

describe("portico agent test", () => {
  it("runs the example of the page: calls of tools, an approval, two turns, and an error of the provider", async () => {
    write("agents/clerk/agent.json", block("json"));
    write("agent-tests/clerk.yaml", block("yaml"));
    expect(page).toContain("\nnpx portico agent test agent-tests/clerk.yaml\n");
    expect(await test("agent-tests/clerk.yaml")).toEqual({
      code: 0,
      stdout: [
        "ok  agent-tests/clerk.yaml: finds an order, and pays back after an approval",
        "ok  agent-tests/clerk.yaml: a provider that is overloaded for long",
        "2 passed, 0 failed",
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  it("prints each place that differs, and ends with 1", async () => {
    const model = [finds, { text: "Order 7 is sent", usage: { input: 30, output: 12 } }];
    const checks = {
      ...{ end: "refusal", output: { contains: ["7", "paid"], excludes: "sent", matches: "^order", schema: {} } },
      calls: [{ tool: "find", contain: { of: { kind: "bill" } }, schema: { required: ["customer"] }, isError: true }],
      ...{ includes: ["pay"], excludes: ["find"] },
      atMost: { modelCalls: 1, toolCalls: 0, inputTokens: 29, outputTokens: 12, tokens: 41, cost: 1 },
    };
    const both = { model, tools: { find: { output: { state: "sent" } } } };
    const differing = await run(
      { ...both, expect: { end: "completed", calls: ["find"], atMost: { modelCalls: 2, tokens: 42 } } },
      { ...both, expect: checks },
      { ...both, expect: { calls: ["pay", "find"] } },
      { model: [{ text: "Hi" }], expect: { atMost: { tokens: 100 } } },
    );
    const got = 'got "Order 7 is sent"';
    expect(differing).toEqual([
      [],
      [
        'end: expected "refusal", got "completed"',
        `output: expected a text that contains "paid", ${got}`,
        `output: expected a text without "sent", ${got}`,
        `output: expected a text that matches ^order, ${got}`,
        `output: expected JSON, ${got}`,
        'calls[0].arguments.of.kind: expected "bill", got "order"',
        "calls[0].arguments: arguments: must have required property 'customer'",
        "calls[0].isError: expected true, got false",
        "includes[0]: expected a call of pay, got find",
        "excludes: find was called",
        "atMost.modelCalls: expected at most 1, got 2",
        "atMost.toolCalls: expected at most 0, got 1",
        "atMost.inputTokens: expected at most 29, got 30",
        "atMost.tokens: expected at most 41, got 42",
        "atMost.cost: expected at most 1, got nothing: the usage or the price of the model is unknown",
      ],
      ["calls: expected pay, find, got find"],
      ["atMost.tokens: expected at most 100, got nothing: no answer of the model says its usage"],
    ]);
  });

  it("lets arguments fail that do not fit the schema of a tool, and tools that the case lets fail", async () => {
    const wrong = { calls: [{ tool: "find", arguments: { number: "seven" } }] };
    const calls = [
      { tool: "find", arguments: { number: "seven" }, isError: true },
      { tool: "find", isError: true },
      { tool: "find", isError: false },
      { tool: "gone", isError: true },
    ];
    const model = [wrong, finds, finds, { calls: [{ tool: "gone" }] }, { text: "Found" }];
    expect(await run({ model, tools: { find: [{ error: "Try again" }, { output: "here" }] }, expect: { calls } })).toEqual([[]]);
  });

  it("fails a case without an answer for a call, and a case with answers that are left", async () => {
    const [short, long] = await run({ model: [finds] }, { model: [{ text: "Hi" }, { text: "Again" }] });
    expect(short).toEqual([
      "tools.find: the case has no answer for this tool",
      "model[1]: the case has no answer for this call of the model",
      'status: expected "completed", got "failed"',
      expect.stringContaining("error: model_refused: "),
    ]);
    expect(long).toEqual(["model: the case has 2 answers, and the model was called 1 times"]);
  });

  it("ends turns as a service does: refusals, cut and empty answers, failures that pass and that stay", async () => {
    const refused = { error: { kind: "authentication", message: "No such key", status: 401 } };
    const ended = await run(
      { model: [{ text: "No", stop: "refusal" }], expect: { end: "refusal", output: "No" } },
      { model: [{ text: "So f", stop: "max_tokens" }], expect: { end: "max_tokens" } },
      { model: [{ text: "" }], expect: { end: "empty_answer" } },
      { model: [{ error: { kind: "rate-limit" } }, { text: "Hi" }], expect: { output: "Hi", atMost: { modelCalls: 2 } } },
      { model: [refused], expect: { status: "failed", error: { code: "model_refused", message: { contains: "No such key" } } } },
      { model: [{ text: "So far", ...refused }], expect: { status: "failed", output: "So far" } },
    );
    expect(ended).toEqual([[], [], [], [], [], []]);
  });

  it("lets other agents answer, sends messages, and lets calls wait that a person must decide", async () => {
    write("agents/helper/agent.json", { ...agent, toolPolicy: { tools: { pay: "ask" } } });
    const delegated = { tool: "DelegateToAgent", arguments: { agentId: "other", prompt: "Do it" } };
    const pays = { calls: [{ tool: "pay", arguments: { amount: 30 } }] };
    const decided = await run(
      {
        model: [{ calls: [delegated] }, { calls: [{ tool: "SendUserMessage", arguments: { text: "Soon" } }] }, { text: "Done" }],
        tools: { DelegateToAgent: { output: "I did it" } },
        expect: {
          calls: [
            { ...delegated, isError: false },
            { tool: "SendUserMessage", isError: false },
          ],
        },
      },
      { model: [pays], expect: { status: "waiting", calls: [{ tool: "pay", arguments: { amount: 30 } }] } },
      { model: [pays, { text: "Pity" }], approvals: { pay: "reject" }, expect: { calls: [{ tool: "pay", isError: true }] } },
      {
        model: [pays, { text: "Paid" }],
        approvals: { pay: { decision: "approve", arguments: { amount: 3 } } },
        tools: { pay: { output: "done" } },
        expect: { calls: [{ tool: "pay", arguments: { amount: 3 }, isError: false }] },
      },
    );
    expect(decided).toEqual([[], [], [], []]);
  });

  it("executes the tools of a memory on an empty one, unless the case answers them", async () => {
    write("agents/helper/agent.json", { name: "Keeper", memory: true });
    const reads = { calls: [{ tool: "ReadMemory", arguments: { name: "Likes" } }] };
    const writes = { calls: [{ tool: "WriteMemory", arguments: { name: "Likes", text: "Tea" } }] };
    const differences = await run(
      {
        model: [reads, writes, reads, { text: "done" }],
        expect: {
          calls: [
            { tool: "ReadMemory", isError: true },
            { tool: "WriteMemory", isError: false },
            { tool: "ReadMemory", isError: false },
          ],
        },
      },
      {
        model: [reads, { text: "Tea" }],
        tools: { ReadMemory: { output: "Version: 1\nTea" } },
        expect: { calls: [{ tool: "ReadMemory", isError: false }] },
      },
    );
    expect(differences).toEqual([[], []]);
  });

  it("takes what the agent's resources say from the case, and checks which one is read", async () => {
    write("agents/helper/agent.json", { name: "Clerk", resources: ["shop/shop://menu", "shop/shop://orders/{id}"] });
    const reads = (resource: string) => ({ calls: [{ tool: "ReadResource", arguments: { resource } }] });
    const answers = { tools: { ReadResource: { output: "Tea costs 3 coins" } } };
    const read = (isError: boolean) => ({ expect: { calls: [{ tool: "ReadResource", isError }] } });
    const differences = await run(
      { model: [reads("shop/shop://menu"), { text: "3 coins" }], ...answers, ...read(false) },
      { model: [reads("shop/shop://secret"), { text: "?" }], ...answers, ...read(true) },
      { model: [reads("shop/shop://menu"), { text: "?" }], tools: { ReadResource: { error: "Gone" } }, ...read(true) },
      { model: [reads("shop/shop://menu"), { text: "?" }] },
    );
    expect(differences).toEqual([[], [], [], ["tools.ReadResource: the case has no answer for this tool"]]);
  });

  it("reads an agent.json by its path, with its skills, and counts costs by the prices of the configuration", async () => {
    write("portico.config.json", {
      prices: { currency: "EUR", models: [{ model: "large", from: "2026-01-01", input: 1_000_000, output: 2_000_000 }] },
    });
    write("other/expert/agent.json", { name: "Expert", provider: "acme", model: "large", skills: ["fish"] });
    write("other/expert/fish/SKILL.md", "---\nname: fish\ndescription: All about fish.\n---\nFish swim.\n");
    const model = [
      { calls: [{ tool: "ReadSkill", arguments: { skill: "fish" } }], usage: { input: 1, output: 1 } },
      { text: "They swim", usage: { input: 2, output: 1 } },
    ];
    const expected = { calls: [{ tool: "ReadSkill", isError: false }], atMost: { cost: 7 } };
    const cases = [
      { name: "cheap", messages: ["Fish?"], model, expect: expected },
      { name: "dear", messages: ["Fish?"], model, expect: { atMost: { cost: 6.5 } } },
    ];
    write("tests/expert.json", { agent: "../other/expert/agent.json", cases });
    const { code, stdout } = await test("tests/expert.json");
    expect([code, stdout.split("\n").slice(0, 3)]).toEqual([
      1,
      ["ok  tests/expert.json: cheap", "FAILED  tests/expert.json: dear", "        atMost.cost: expected at most 6.5, got 7"],
    ]);
  });

  const good = { name: "good", messages: ["Hello"], model: [{ text: "Hi" }] };
  it.each([
    ["an unknown key", { cases: [{ ...good, expect: { outputs: "Hi" } }] }, "cases.0.expect.outputs: "],
    ["a wrong value", { cases: [{ ...good, model: [{ text: 5 }] }] }, "cases.0.model.0.text: Invalid type: Expected string"],
    [
      "a wrong value in one of two forms",
      { cases: [{ ...good, expect: { output: { contains: [5] } } }] },
      "cases.0.expect.output.contains.0: ",
    ],
    ["an answer without content", { cases: [{ ...good, model: [{}] }] }, "cases.0.model.0: Expected text, calls or error"],
    [
      "a JSON Schema that cannot be used",
      { cases: [{ ...good, expect: { output: { schema: { type: "word" } } } }] },
      "cases.0.expect.output.schema: ",
    ],
    [
      "an expression that takes more than linear time",
      { cases: [{ ...good, expect: { output: { matches: "(a)\\1" } } }] },
      "cases.0.expect.output.matches: ",
    ],
    [
      "too many messages",
      { cases: [{ ...good, messages: Array(201).fill("Hello") }] },
      "cases.0.messages: Invalid length: Expected <=200",
    ],
    ["two cases of one name", { cases: [good, good] }, "Two cases have the name"],
    ["an unknown agent", { agent: "gone", cases: [good] }, 'agent: The project has no agent "gone"'],
    [
      "an agent of another engine",
      { agent: "echo", cases: [good] },
      'agent: Expected an agent with the engine "loop", got "echo"',
    ],
    ["an agent that cannot be used", { agent: "broken", cases: [good] }, "agent: broken/agent.json: maxTurns"],
    ["a text that is too long", " ".repeat(1024 * 1024 + 1), "Expected at most 1048576 characters"],
    ["a text with too many levels", `cases: ${"[".repeat(50_000)}`, "Invalid YAML: "],
  ])("refuses %s with 1, and names the file and the place", async (_what, cases, message) => {
    write("agents/echo/agent.json", { name: "Echo", engine: "echo" });
    write("agents/broken/agent.json", { name: "Broken", maxTurns: 0 });
    write("cases.json", typeof cases === "string" ? cases : { agent: "helper", ...cases });
    const { code, stdout, stderr } = await test("cases.json");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(`cases.json: ${message}`);
  });

  it("ends with 66 if a file cannot be read", async () => {
    expect((await test("none.yaml")).code).toBe(66);
    write("cases.json", { agent: "gone/agent.json", cases: [good] });
    expect((await test("cases.json")).code).toBe(66);
  });
});
