import { getEventListeners } from "node:events";
import { join } from "node:path";
import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { demo } from "@portico/adapters/models/demo";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { type FunctionTool, functionTools } from "@portico/adapters/tools/functions";
import { mcpTools, type McpToolsOptions } from "@portico/adapters/tools/mcp";
import { ports } from "@portico/core";
import { credentialTool } from "@portico/plugins/model-proxy/credential-tool";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type McpHttpServer, startMcpHttpServer } from "../harness/mcp-http-server.ts";
import { openAdapter } from "./open-adapter.ts";
import { toolsConformance } from "./tools.ts";

const caller: ports.ToolCaller = { userId: "ada" };

function tool(name: string, run: FunctionTool["run"], more: Partial<FunctionTool> = {}): FunctionTool {
  return {
    name,
    description: `Does ${name}`,
    inputSchema: { type: "object" },
    riskLevel: "low",
    requiresConfirmation: false,
    run,
    ...more,
  };
}

const never = (_args: unknown, _caller: ports.ToolCaller, signal: AbortSignal): Promise<string> =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("its own words"))));

toolsConformance("functions", () => ({
  adapter: functionTools({
    tools: [
      tool("greet", async (args) => {
        const name = (args as { name?: unknown } | null)?.name;
        if (typeof name !== "string") throw new ports.ToolArgumentsInvalid("name: expected a string");
        return `Hello ${name}`;
      }),
      tool("break", async () => {
        throw new Error("hidden-word");
      }),
      tool("hang", never, { id: "server/hang" }),
    ],
  }),
  works: { toolId: "greet", arguments: { name: "Ada" } },
  broken: [null, {}, { name: 5 }, "hidden-word"],
  fails: { toolId: "break", arguments: {} },
  hangs: { toolId: "server/hang", arguments: {} },
}));

toolsConformance(
  "ComputeCredential",
  () => ({
    adapter: credentialTool({}),
    works: { toolId: "ComputeCredential", arguments: { action: "get", provider: "demo" } },
    broken: [
      undefined,
      null,
      [],
      "hidden-word",
      {},
      { action: "hidden-word" },
      { action: "get", raw: "hidden-word" },
      { action: "get", raw: 1 },
      { action: "get", provider: ["hidden-word"] },
      { action: "get", more: "hidden-word" },
    ],
  }),
  { others: [demo({}), memoryRecords(), memorySecrets(), systemClock(), randomIds()] },
);

const throughMcp = (place: Pick<McpToolsOptions, "command" | "args" | "url">) => () => ({
  adapter: mcpTools({ id: "shop", ...place }),
  works: { toolId: "shop/greet", arguments: { name: "Ada" } },
  broken: [undefined, null, [], {}, "hidden-word", { name: 5 }, { name: "" }, { name: "Ada", more: "hidden-word" }],
  fails: { toolId: "shop/break", arguments: {} },
  tellsFailures: true,
  hangs: { toolId: "shop/hang", arguments: {} },
});
const aroundMcp = { others: [systemClock(), memoryTelemetry({})] };

const program = { command: process.execPath, args: [join(import.meta.dirname, "processes/mcp-server.ts")] };
toolsConformance("mcp, over standard input and output", throughMcp(program), aroundMcp);

describe("an MCP server over HTTP", () => {
  let server: McpHttpServer;
  beforeAll(async () => {
    server = await startMcpHttpServer();
  });
  afterAll(() => server.close());

  toolsConformance("mcp, over streamable HTTP", () => throughMcp({ url: server.url })(), aroundMcp);

  it("has tools that are idempotent where it says so, or that they only read", async () => {
    const { port, close } = await openAdapter(mcpTools({ id: "shop", url: server.url }), aroundMcp.others);
    const idempotent = (await port.list()).filter(({ idempotent }) => idempotent).map(({ id }) => id);
    await close();
    expect(idempotent).toEqual(["shop/greet", "shop/knock"]);
  });
});

describe("tools/functions", () => {
  const open = async (...tools: readonly FunctionTool[]) => (await openAdapter(functionTools({ tools }))).port;
  const quiet = () => new AbortController().signal;

  it("makes a text of a string, and hands a result on as it is", async () => {
    const result: ports.ToolResult = { content: [{ type: "image", mimeType: "image/png", data: "AA==" }], isError: true };
    const source = await open(
      tool("text", async () => "one"),
      tool("result", async () => result),
    );
    expect(await source.call({ toolId: "text", arguments: {}, caller }, quiet())).toEqual({
      content: [{ type: "text", text: "one" }],
      isError: false,
    });
    expect(await source.call({ toolId: "result", arguments: {}, caller }, quiet())).toEqual(result);
  });

  it("gives a tool its arguments, on whose behalf it runs, and the signal", async () => {
    const seen: unknown[] = [];
    const source = await open(tool("note", async (...given) => String(seen.push(...given))));
    const signal = quiet();
    await source.call({ toolId: "note", arguments: { a: 1 }, caller }, signal);
    expect(seen).toEqual([{ a: 1 }, caller, signal]);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("lists a tool under its id, which is its name unless it has one, as not idempotent unless it says so, and without its function", async () => {
    const source = await open(
      tool("plain", never),
      tool("named", never, { id: "server/named", riskLevel: "high", requiresConfirmation: true, idempotent: true }),
    );
    expect(await source.list()).toEqual([
      {
        id: "plain",
        name: "plain",
        description: "Does plain",
        inputSchema: { type: "object" },
        riskLevel: "low",
        requiresConfirmation: false,
        idempotent: false,
      },
      {
        id: "server/named",
        name: "named",
        description: "Does named",
        inputSchema: { type: "object" },
        riskLevel: "high",
        requiresConfirmation: true,
        idempotent: true,
      },
    ]);
    await expect(source.call({ toolId: "named", arguments: {}, caller }, quiet())).rejects.toThrow(ports.ToolNotFound);
  });

  it("reports a tool that throws as a failed call, and an unavailable tool as ToolsUnavailable", async () => {
    const source = await open(
      tool("throws", () => {
        throw new Error("hidden-word");
      }),
      tool("away", () => Promise.reject(new ports.ToolsUnavailable("The printer is switched off"))),
    );
    expect((await source.call({ toolId: "throws", arguments: {}, caller }, quiet())).isError).toBe(true);
    await expect(source.call({ toolId: "away", arguments: {}, caller }, quiet())).rejects.toThrow(ports.ToolsUnavailable);
  });

  it("does not wait for a stopped tool that does not listen, nor for what becomes of it", async () => {
    const { promise, reject } = Promise.withResolvers<string>();
    const source = await open(tool("deaf", () => promise));
    const stopping = new AbortController();
    const call = source.call({ toolId: "deaf", arguments: {}, caller }, stopping.signal);
    const reason = new Error("the turn was stopped");
    stopping.abort(reason);
    await expect(call).rejects.toBe(reason);
    reject(new Error("later"));
  });

  it.each<[string, readonly FunctionTool[], string]>([
    ["two of one id", [tool("a", never), tool("b", never, { id: "a" })], 'Two tools have the id "a"'],
    ["two of one name", [tool("a", never), tool("a", never, { id: "b" })], 'Two tools have the name "a"'],
    ["a name with a space", [tool("a b", never)], '"a b" needs a name'],
    ["a name with a slash", [tool("server/a", never)], "needs a name"],
    ["an empty name", [tool("", never, { id: "x" })], '"x" needs a name'],
    ["a name that is too long for a protocol", [tool("x".repeat(65), never)], "needs a name"],
  ])("refuses %s at the start", async (_name, tools, sentence) => {
    await expect(open(...tools)).rejects.toThrow(sentence);
  });

  it("has the id that it is told, for logs", async () => {
    expect((await open()).id).toBe("functions");
    expect((await openAdapter(functionTools({ id: "own", tools: [] }))).port.id).toBe("own");
  });
});
