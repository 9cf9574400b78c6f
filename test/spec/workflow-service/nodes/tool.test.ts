import { systemClock } from "@portico/adapters/clock/system";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type FunctionTool, functionTools } from "@portico/adapters/tools/functions";
import { mcpAccountTools, mcpTools } from "@portico/adapters/tools/mcp";
import { toolNode } from "@portico/adapters/workflow-nodes/tool";
import { defineAdapter, ports } from "@portico/core";
import { describe, expect, it, vi } from "vitest";
import { startMcpAccountServer } from "../../../harness/mcp-account-server.ts";
import { startMcpHttpServer } from "../../../harness/mcp-http-server.ts";
import { deepList } from "../../../harness/deep-json.ts";
import { temporaryFolder } from "../../../harness/portico-process.ts";
import { openNode, type OpenNode } from "../../../harness/run-node.ts";

const tool = (name: string, run: FunctionTool["run"], more: Partial<FunctionTool> = {}): FunctionTool => ({
  name,
  description: `Does ${name}`,
  inputSchema: { type: "object" },
  riskLevel: "low",
  requiresConfirmation: false,
  run,
  ...more,
});
const open = (...tools: FunctionTool[]) => openNode(toolNode(), [functionTools({ tools })]);
const sourceOf = defineAdapter({
  name: "tools/given",
  port: ports.tools,
  needs: {},
  open: (_given, source: ports.ToolSource) => source,
});
const gives = async (result: string | ports.ToolResult) => {
  await using node = await open(tool("give", async () => result));
  return node.run({ tool: "give" });
};
const text = (said: string): ports.ToolContent => ({ type: "text", text: said });
const image: ports.ToolContent = { type: "image", mimeType: "image/png", data: "AA==" };

describe("tool: what it gives", () => {
  it("is the JSON of a single text that is JSON, and texts otherwise", async () => {
    expect(await gives('{"a":[1]}')).toEqual({ a: [1] });
    expect(await gives("null")).toBeNull();
    expect(await gives("Hello")).toEqual({ text: "Hello" });
    expect(await gives({ content: [text("1"), text("2")], isError: false })).toEqual({ text: "1\n2" });
    expect(await gives({ content: [], isError: false })).toEqual({ text: "" });
  });

  it("is the content as it was given where there are images", async () => {
    const content = [text("1"), image];
    expect(await gives({ content, isError: false })).toEqual({ content });
  });

  it("is as large as an output may be", async () => {
    await using node = await open(tool("give", async () => "x".repeat(ports.NODE_OUTPUT_BYTES)));
    expect(await node.failure({ tool: "give" })).toMatchObject({ code: "tool_too_large", retryable: false });
  });

  it("is nested as deep as an output may be", async () => {
    expect(JSON.stringify(await gives(deepList(ports.NODE_OUTPUT_LEVELS)))).toHaveLength(2 * ports.NODE_OUTPUT_LEVELS);
    for (const levels of [ports.NODE_OUTPUT_LEVELS + 1, 10_000]) {
      await using node = await open(tool("give", async () => deepList(levels)));
      expect(await node.failure({ tool: "give" })).toMatchObject({ code: "tool_too_deep", retryable: false });
    }
  });
});

describe("tool: on whose behalf", () => {
  it("is the user of the run, with the run's id", async () => {
    await using node = await open(tool("who", async (_args, caller) => JSON.stringify(caller)));
    expect(await node.run({ tool: "who" }, { runId: "run_7", userId: "ada" })).toEqual({ userId: "ada", runId: "run_7" });
  });

  it("cannot confirm: a tool that needs a confirmation does not run, and its definition is not loaded", async () => {
    let ran = false;
    await using node = await open(tool("erase", async () => String((ran = true)), { requiresConfirmation: true }));
    expect(await node.failure({ tool: "erase" })).toMatchObject({ code: "tool_needs_confirmation", retryable: false });
    expect(ran).toBe(false);
    expect(node.check({ tool: "erase" })).toEqual([{ path: ["tool"], message: expect.stringContaining("consent") as string }]);
  });
});

describe("tool: done again after a crash", () => {
  const isRepeatable = ({ node }: OpenNode, id: string) =>
    (node.repeatable as (input: unknown) => boolean)({ tool: id, arguments: {} });

  it("is where the tool says that it is idempotent, and nowhere else", async () => {
    const silent = tool("add", async () => "");
    await using node = await open(
      tool("set", async () => "", { idempotent: true }),
      silent,
      tool("send", async () => "", { idempotent: false }),
    );
    expect(["set", "add", "send", "no-such"].map((id) => isRepeatable(node, id))).toEqual([true, false, false, false]);
  });

  it("goes by what the tool said last", async () => {
    const definition = { ...tool("set", async () => ""), id: "set" };
    let idempotent = true;
    const source: ports.ToolSource = {
      id: "changing",
      list: async () => [{ ...definition, idempotent }],
      call: async () => ({ content: [], isError: false }),
    };
    await using node = await openNode(toolNode(), [sourceOf(source)]);
    expect(isRepeatable(node, "set")).toBe(true);
    idempotent = false;
    await node.run({ tool: "set" });
    expect(isRepeatable(node, "set")).toBe(false);
  });

  it("is not repeated while it is unknown whether the tool allows it", async () => {
    const { promise: later, resolve } = Promise.withResolvers<readonly ports.ToolDefinition[]>();
    const source: ports.ToolSource = { id: "slow", list: () => later, call: async () => ({ content: [], isError: false }) };
    await using node = await openNode(toolNode(), [sourceOf(source)]);
    expect(isRepeatable(node, "set")).toBe(false);
    resolve([{ ...tool("set", async () => ""), id: "set", idempotent: true }]);
    await vi.waitFor(() => expect(isRepeatable(node, "set")).toBe(true), { timeout: 30_000 });
  });
});

describe("tool: what goes wrong", () => {
  it("is tool_failed, with the tool's own words, and may be tried again", async () => {
    await using node = await open(tool("give", async () => ({ content: [text("The printer is empty")], isError: true })));
    expect(await node.failure({ tool: "give" })).toMatchObject({
      code: "tool_failed",
      message: "The printer is empty",
      retryable: true,
    });
  });

  it("is tool_not_found for a tool that is not there, also when it is loaded", async () => {
    await using node = await open(tool("give", async () => ""));
    expect(await node.failure({ tool: "no-such" })).toMatchObject({ code: "tool_not_found", retryable: false });
    expect(node.check({ tool: "no-such" })).toMatchObject([{ path: ["tool"] }]);
    expect(node.check({ tool: "give" })).toEqual([]);
  });

  it("is a sentence where no tools are configured", async () => {
    await using node = await openNode(toolNode(), []);
    const sentence = /No tools are configured in this instance/;
    expect(node.check({ tool: "give" })).toEqual([{ path: [], message: expect.stringMatching(sentence) as string }]);
    expect((await node.failure({ tool: "give" })).message).toMatch(sentence);
  });

  it("is tool_arguments_invalid, or tools_unavailable, which alone may pass", async () => {
    await using node = await open(
      tool("strict", () => Promise.reject(new ports.ToolArgumentsInvalid("name: expected a string"))),
      tool("away", () => Promise.reject(new ports.ToolsUnavailable("The printer is off"))),
    );
    expect(await node.failure({ tool: "strict" })).toMatchObject({ code: "tool_arguments_invalid", retryable: false });
    expect(await node.failure({ tool: "away" })).toMatchObject({ code: "tools_unavailable", retryable: true });
  });
});

describe("tool: of an MCP server", () => {
  it("runs, checks its arguments, and says when the server is away", async () => {
    const server = await startMcpHttpServer();
    const around = [systemClock(), memoryTelemetry({})];
    await using node = await openNode(toolNode(), [mcpTools({ id: "shop", url: server.url }), ...around]);
    expect(await node.run({ tool: "shop/greet", arguments: { name: "Ada" } })).toEqual({ text: "Hello Ada" });
    // By its annotations: greeting is read-only, and the other tool has no annotation.
    const repeatable = node.node.repeatable as (input: unknown) => boolean;
    expect(["shop/greet", "shop/break"].map((id) => repeatable({ tool: id, arguments: {} }))).toEqual([true, false]);
    expect(await node.failure({ tool: "shop/greet", arguments: { name: 5 } })).toMatchObject({ code: "tool_arguments_invalid" });
    const broken = await node.failure({ tool: "shop/break" });
    expect([broken.code, broken.message]).toEqual(["tool_failed", "hidden-word"]);
    await server.close();
    await using away = await openNode(toolNode(), [mcpTools({ id: "shop", url: server.url }), ...around]);
    expect(await away.failure({ tool: "shop/greet", arguments: { name: "Ada" } })).toMatchObject({
      code: "tools_unavailable",
      retryable: true,
    });
    // Its tools are unknown, which is not a fault of the definition.
    expect(away.check({ tool: "shop/greet" })).toEqual([]);
  });

  it("says `connect_again` after the account was revoked, and to runs of users without their own account", async () => {
    const server = await startMcpAccountServer();
    const dir = temporaryFolder();
    for (const per of ["instance", "user"] as const) {
      const source = mcpAccountTools({ id: per, url: server.url, auth: { type: "oauth", per, allow: [] } });
      const stores = sqliteStore({ dir: dir.path, ports: [ports.records, ports.secrets, ports.sealing] });
      const around = [systemClock(), memoryTelemetry({}), ...stores];
      let shop!: ports.ToolSource;
      const seen = defineAdapter({
        ...{ name: "tools/seen", port: ports.tools, needs: source.spec.needs },
        open: async (given: any, _options: void, scope) => (shop = await source.spec.open(given, source.options as never, scope)),
      });
      await using node = await openNode(toolNode(), [seen(), ...around]);
      const call = { tool: `${per}/greet`, arguments: { name: "Ada" } };
      const lost = {
        code: "connect_again",
        retryable: false,
        message: expect.stringContaining("A person must connect it again"),
      };
      const ada = { runId: "run_1", userId: "ada" };
      expect(await node.failure(call, ada)).toMatchObject(lost);
      const redirectUrl = "https://desk.example/";
      const owner = per === "user" ? { userId: "ada" } : {};
      const signal = AbortSignal.timeout(20_000);
      const { url } = await shop.authorization!.begin({ ...owner, redirectUrl }, signal);
      const back = Object.fromEntries(new URL(server.authorization.agree(url)).searchParams) as { state: string; code: string };
      await shop.authorization!.finish({ ...owner, ...back }, signal);
      expect(await node.run(call, ada)).toEqual({ text: "Hello Ada" });
      if (per === "user") expect(await node.failure(call, { ...ada, userId: "bob" })).toMatchObject(lost);
      server.authorization.revokeAll();
      expect(await node.failure(call, ada)).toMatchObject(lost);
    }
    await server.close();
    dir.remove();
  });
});
