import { systemClock } from "@portico/adapters/clock/system";
import { createMemoryTelemetry, type MemoryTelemetry, memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpTools, type McpToolsOptions } from "@portico/adapters/tools/mcp";
import { ports } from "@portico/core";
import { afterEach, describe, expect, it } from "vitest";
import { type RawMcpAnswer, type RawMcpServer, startRawMcpServer } from "../harness/raw-mcp-server.ts";
import { openAdapter } from "./open-adapter.ts";

const object = { type: "object" };
const tool = (name: string, more: object = {}) => ({ name, description: `Does ${name}`, inputSchema: object, ...more });

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

interface Opened {
  readonly source: ports.ToolSource;
  readonly server: RawMcpServer;
  readonly telemetry: MemoryTelemetry;
}

async function open(
  tools: readonly unknown[],
  call?: RawMcpAnswer,
  others?: Readonly<Record<string, RawMcpAnswer>>,
  options: Partial<McpToolsOptions> = {},
): Promise<Opened> {
  const server = await startRawMcpServer(tools, call, others);
  undo.push(() => server.close());
  const telemetry = createMemoryTelemetry();
  const adapter = mcpTools({ id: "shop", url: server.url, ...options });
  const opened = await openAdapter(adapter, [systemClock(), memoryTelemetry({ telemetry })]);
  undo.push(() => opened.close());
  return { source: opened.port, server, telemetry };
}

function run(source: ports.ToolSource, toolId: string, args: unknown = {}): Promise<ports.ToolResult> {
  return source.call({ toolId, arguments: args, caller: {} }, new AbortController().signal);
}

describe("what an MCP server lists", () => {
  it.each([
    { annotations: undefined, trusted: "medium", untrusted: "medium" },
    { annotations: {}, trusted: "medium", untrusted: "medium" },
    { annotations: { readOnlyHint: true }, trusted: "low", untrusted: "medium" },
    { annotations: { readOnlyHint: false }, trusted: "medium", untrusted: "medium" },
    { annotations: { destructiveHint: true }, trusted: "high", untrusted: "high" },
    { annotations: { destructiveHint: false }, trusted: "medium", untrusted: "medium" },
    { annotations: { readOnlyHint: true, destructiveHint: true }, trusted: "high", untrusted: "high" },
    { annotations: { readOnlyHint: "true", destructiveHint: 1 }, trusted: "medium", untrusted: "medium" },
    { annotations: "none", trusted: "medium", untrusted: "medium" },
  ])("$annotations: $trusted of a trusted server, $untrusted of another (open points 3)", async ({ annotations, ...levels }) => {
    for (const trusted of [true, false]) {
      const { source } = await open([tool("a", { annotations })], undefined, undefined, { trusted });
      const [listed] = await source.list();
      const riskLevel = trusted ? levels.trusted : levels.untrusted;
      expect(listed).toMatchObject({ riskLevel, requiresConfirmation: riskLevel === "high" });
    }
  });

  it.each([
    { annotations: undefined, idempotent: false },
    { annotations: "none", idempotent: false },
    { annotations: { idempotentHint: true }, idempotent: true },
    { annotations: { idempotentHint: true, destructiveHint: true }, idempotent: true },
    { annotations: { readOnlyHint: true }, idempotent: true },
    { annotations: { readOnlyHint: true, idempotentHint: false }, idempotent: true },
    { annotations: { readOnlyHint: false, idempotentHint: false }, idempotent: false },
    { annotations: { idempotentHint: "true", readOnlyHint: 1 }, idempotent: false },
  ])("$annotations: idempotent is $idempotent, trusted or not", async ({ annotations, idempotent }) => {
    for (const trusted of [true, false]) {
      const { source } = await open([tool("a", { annotations })], undefined, undefined, { trusted });
      expect(await source.list()).toMatchObject([{ idempotent }]);
    }
  });

  it("is not trusted by default", async () => {
    const { source } = await open([tool("a", { annotations: { readOnlyHint: true } })]);
    expect((await source.list())[0]?.riskLevel).toBe("medium");
  });

  it("has ids by server and tool, names that a model can call, and descriptions", async () => {
    const long = "x".repeat(80);
    const listed = [tool("get.one"), tool("a/b"), tool("a.b"), tool(long), tool("plain", { description: " ", title: "A title" })];
    const cut = tool("cut", { description: "half \ud83d" });
    const { source } = await open([...listed, tool("bare", { description: undefined }), cut]);
    const tools = new Map((await source.list()).map((each) => [each.id, each]));
    expect([...tools.keys()]).toEqual(["get.one", "a/b", "a.b", long, "plain", "bare", "cut"].map((name) => `shop/${name}`));
    expect(tools.get("shop/get.one")).toEqual({
      id: "shop/get.one",
      name: "shop_get_one",
      description: "Does get.one",
      inputSchema: object,
      riskLevel: "medium",
      requiresConfirmation: false,
      idempotent: false,
    });
    const names = [...tools.values()].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(tools.get("shop/plain")?.description).toBe("A title");
    expect(tools.get("shop/cut")?.description).toBe("half \ufffd");
    expect(tools.get("shop/bare")?.description).toBe("bare");
  });

  it("gives names that do not depend on the order of the list", async () => {
    const namesOf = async (tools: readonly unknown[]) =>
      new Map((await (await open(tools)).source.list()).map(({ id, name }) => [id, name]));
    expect(await namesOf([tool("a.b"), tool("a/b")])).toEqual(await namesOf([tool("a/b"), tool("a.b")]));
  });

  it("leaves out tools that cannot be called, and says which and why", async () => {
    const strange = [
      tool("text", { inputSchema: { type: "string" } }),
      tool("none", { inputSchema: undefined }),
      tool("list", { inputSchema: [] }),
      tool("broken", { inputSchema: { type: "object", properties: { a: { type: "no-such-type" } } } }),
      tool("elsewhere", { inputSchema: { type: "object", properties: { a: { $ref: "https://example.com/schema" } } } }),
      tool("later", { inputSchema: { $async: true, type: "object" } }),
      tool("with space"),
      tool(""),
      tool("good"),
      { inputSchema: object },
      "hidden-word",
      null,
    ];
    const { source, telemetry } = await open([tool("good"), ...strange]);
    expect((await source.list()).map(({ id }) => id)).toEqual(["shop/good"]);
    const unusable = (tool: string, reason: string) => ({
      toolId: `shop/${tool}`,
      kind: "left_out",
      message: `The schema of its arguments ${reason}`,
    });
    const nameless = [8, 9, 11, 12, 13].map((at) => ({
      kind: "left_out",
      message: `Tool ${at} of the server's list has no usable name`,
    }));
    const problems = [
      ...["text", "none", "list"].map((name) => unusable(name, "is not of type object")),
      unusable("broken", "cannot be used: Invalid JSON Schema: /properties/a/type must be equal to one of the allowed values"),
      unusable(
        "elsewhere",
        "cannot be used: A reference of this JSON Schema has no target: `$ref` can only refer to the same schema",
      ),
      unusable("later", "cannot be used: `$async` is not part of JSON Schema"),
      ...nameless.slice(0, 2),
      { toolId: "shop/good", kind: "left_out", message: "Another tool of the server has the same name" },
      ...nameless.slice(2),
    ];
    expect(source.problems?.()).toEqual(problems);
    expect(telemetry.lines.filter(({ level }) => level === "warn").map(({ message, fields }) => ({ message, fields }))).toEqual(
      problems.map((problem) => ({
        message: "A tool of an MCP server is left out",
        fields: { server: "shop", reason: problem.message, ...("toolId" in problem && { tool: problem.toolId }) },
      })),
    );
  });

  it("with a pattern that RE2 lacks is offered: the pattern is the server's to check, and the log says so", async () => {
    const properties = { a: { type: "string", pattern: "^(?!no)" }, b: { type: "string", pattern: "^[a-z\\_]+$" } };
    const { source, telemetry, server } = await open([tool("ahead", { inputSchema: { type: "object", properties } })]);
    expect((await source.list()).map(({ id }) => id)).toEqual(["shop/ahead"]);
    expect(source.problems?.()).toMatchObject([{ toolId: "shop/ahead", kind: "unchecked" }]);
    const line = telemetry.lines.find(({ message }) => message === "Some patterns of a tool are checked only by its MCP server");
    expect(line?.fields).toMatchObject({ server: "shop", tool: "shop/ahead" });
    await run(source, "shop/ahead", { a: "no", b: "a_b" });
    expect(server.requests.filter(({ method }) => method === "tools/call")).toHaveLength(1);
    await expect(run(source, "shop/ahead", { a: "yes", b: "A" })).rejects.toThrow(ports.ToolArgumentsInvalid);
  });

  it("is read to its last page, and no further when a page leads to itself", async () => {
    const pages: Record<string, object> = {
      first: { tools: [tool("a")], nextCursor: "2" },
      2: { tools: [tool("b")], nextCursor: "3" },
      3: { tools: [tool("c")], nextCursor: "3" },
    };
    const { source, server } = await open([], undefined, { "tools/list": ({ cursor }) => pages[String(cursor ?? "first")] });
    expect((await source.list()).map(({ id }) => id)).toEqual(["shop/a", "shop/b", "shop/c"]);
    await source.list();
    expect(server.requests.filter(({ method }) => method === "tools/list")).toHaveLength(3);
  });
});

describe("arguments for an MCP server", () => {
  const schema = {
    type: "object",
    properties: { size: { type: "integer", maximum: 3 }, pair: { prefixItems: [{ type: "string" }, false] } },
    required: ["size"],
  };

  it.each([
    ["no object", [], "the arguments: must be object"],
    ["nothing", null, "the arguments: must be object"],
    ["without what is required", {}, "the arguments: must have required property 'size'"],
    ["of a wrong type", { size: "hidden-word" }, "/size: must be integer"],
    ["out of bounds", { size: 77 }, "/size: must be <= 3"],
    ["against a word of 2020-12", { size: 1, pair: ["a", "hidden-word"] }, "/pair/1: boolean schema is false"],
  ])("that are %s do not reach it, and no value is repeated", async (_name, args, sentence) => {
    const { source, server } = await open([tool("a", { inputSchema: schema })]);
    const error = await run(source, "shop/a", args).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ports.ToolArgumentsInvalid);
    expect((error as Error).message).toBe(sentence);
    expect(server.requests.map(({ method }) => method)).not.toContain("tools/call");
  });

  it("follow draft-07 where the schema says so", async () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const inputSchema = { $schema, type: "object", properties: { pair: { items: [{ type: "string" }, { type: "number" }] } } };
    const { source } = await open([tool("a", { inputSchema })]);
    await expect(run(source, "shop/a", { pair: ["a", "b"] })).rejects.toThrow("/pair/1: must be number");
    await expect(run(source, "shop/a", { pair: ["a", 1] })).resolves.toMatchObject({ isError: false });
  });

  it.each(["2020-12", "draft-07"])(
    "are checked by what a schema says of itself, and by no other tool's schema: %s",
    async (dialect) => {
      const schema = (limit: number) => ({
        ...(dialect === "draft-07" ? { $schema: "http://json-schema.org/draft-07/schema#" } : {}),
        $id: "https://shop.example/basket",
        type: "object",
        properties: {
          inside: { type: "array", items: { $ref: "#" } },
          label: { $id: "https://shop.example/label", type: "string", maxLength: limit },
          other: { $ref: "https://shop.example/label" },
        },
      });
      const { source } = await open([tool("a", { inputSchema: schema(1) }), tool("b", { inputSchema: schema(2) })]);
      await expect(run(source, "shop/a", { inside: [{ other: "xx" }] })).rejects.toThrow("/inside/0/other: must NOT");
      await expect(run(source, "shop/b", { inside: [{ other: "xx" }] })).resolves.toMatchObject({ isError: false });
    },
  );

  it("arrive as they are", async () => {
    const { source, server } = await open([tool("a.b")]);
    await run(source, "shop/a.b", { deep: [{ x: null }] });
    expect(server.requests.at(-1)?.params).toMatchObject({ name: "a.b", arguments: { deep: [{ x: null }] } });
  });
});

describe("what a tool of an MCP server gives", () => {
  const uri = "shop://1";
  const text = (said: string) => ({ type: "text", text: said });
  const image = { type: "image", mimeType: "image/png", data: "AAAA" };

  it.each<[string, unknown, unknown]>([
    ["text", { type: "text", text: "one" }, text("one")],
    ["text that was cut through a character", text("half \ud83d"), text("half \ufffd")],
    ["an image", image, image],
    ["an image that is none", { ...image, data: "not base64!" }, text("[The tool gave an image that cannot be read]")],
    ["an image of a strange type", { ...image, mimeType: "text/html" }, text("[The tool gave an image that cannot be read]")],
    [
      "audio",
      { type: "audio", mimeType: "audio/wav", data: "AAAA" },
      text("[The tool gave audio (audio/wav), which cannot be played here]"),
    ],
    ["a text resource", { type: "resource", resource: { uri, text: "inside" } }, text(`Resource ${uri}\n\ninside`)],
    ["an image resource", { type: "resource", resource: { uri, mimeType: "image/png", blob: "AAAA" } }, image],
    [
      "another resource",
      { type: "resource", resource: { uri, mimeType: "application/zip", blob: "AAAA" } },
      text(`[The tool gave the resource ${uri} (application/zip), which is no text]`),
    ],
    ["a link", { type: "resource_link", uri, name: "the first" }, text(`Resource the first: ${uri}`)],
    ["a link without a name", { type: "resource_link", uri }, text(`Resource ${uri}`)],
    ["what came later", { type: "hologram" }, text("[The tool gave content of a kind that cannot be read here]")],
    ["text without text", { type: "text", text: 5 }, text("[The tool gave content of a kind that cannot be read here]")],
    ["a resource without one", { type: "resource" }, text("[The tool gave content of a kind that cannot be read here]")],
    ["nothing", null, text("[The tool gave content of a kind that cannot be read here]")],
  ])("%s", async (_name, content, expected) => {
    const { source } = await open([tool("a")], () => ({ content: [content] }));
    expect(await run(source, "shop/a")).toEqual({ content: [expected], isError: false });
  });

  it("is its structured content if it has no other", async () => {
    const { source } = await open([tool("a")], () => ({ structuredContent: { sum: 3 } }));
    expect(await run(source, "shop/a")).toEqual({ content: [text('{"sum":3}')], isError: false });
  });

  it("is an error if its structured content has a whole number whose digits are lost", async () => {
    const { source } = await open([tool("a")], () => ({
      structuredContent: { deep: [{ id: 2 ** 53 }], text: "12345678901234567890" },
    }));
    const { content, isError } = await run(source, "shop/a");
    expect([content, isError]).toEqual([
      [text(expect.stringContaining("The tool was executed, but its result has a whole"))],
      true,
    ]);
  });

  it("is its content alone where there are both", async () => {
    const { source } = await open([tool("a")], () => ({ content: [text("three")], structuredContent: { sum: 3 } }));
    expect((await run(source, "shop/a")).content).toEqual([text("three")]);
  });

  it("is an error that it calls one", async () => {
    const { source } = await open([tool("a")], () => ({ content: [text("no paper")], isError: true }));
    expect(await run(source, "shop/a")).toEqual({ content: [text("no paper")], isError: true });
  });

  it("is cut above 1 MiB, between two characters, and says so", async () => {
    const { source } = await open([tool("a")], () => ({
      content: [text("x".repeat(1024 * 1024)), text(`x${"é".repeat(600_000)}`)],
    }));
    const [whole, cut] = (await run(source, "shop/a")).content.map((part) => (part.type === "text" ? part.text : ""));
    expect(whole).toBe("x".repeat(1024 * 1024));
    expect(cut?.startsWith(`x${"é".repeat(1024)}`)).toBe(true);
    expect(cut).not.toContain("\uFFFD");
    expect(cut).toMatch(/é\n\[Cut here: the text has 1200001 bytes, of which 1048576 are shown\]$/);
  });

  it.each<[string, unknown]>([
    ["content that is no list", { content: "one" }],
    ["a flag that is none", { content: [], isError: "yes" }],
  ])("is an error result for an answer that cannot be read: %s", async (_name, answer) => {
    const { source } = await open([tool("a")], () => answer);
    expect(await run(source, "shop/a")).toMatchObject({ isError: true, content: [{ type: "text" }] });
  });

  it("is ToolsUnavailable when the server ends its answer early", async () => {
    const { source } = await open([tool("a")], (_params, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing more\n\n");
      return undefined;
    });
    await expect(run(source, "shop/a")).rejects.toThrow(ports.ToolsUnavailable);
  });

  it.each(["application/json", "text/event-stream"])("is ToolsUnavailable for a message that never ends: %s", async (type) => {
    const { source } = await open([tool("a")], (_params, response) => {
      response.writeHead(200, { "content-type": type });
      const pump = (): void => {
        while (!response.destroyed && response.write(`data: ${"x".repeat(60_000)}\n`));
        if (!response.destroyed) response.once("drain", pump);
      };
      pump();
      return undefined;
    });
    await expect(run(source, "shop/a")).rejects.toThrow(ports.ToolsUnavailable);
  });

  it("may be many messages that are large together", async () => {
    const { source } = await open([tool("a")], (_params, response, id) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const message = {
        jsonrpc: "2.0",
        method: "notifications/message",
        params: { level: "info", data: "x".repeat(1024 * 1024) },
      };
      for (let count = 0; count < 12; count++) response.write(`data: ${JSON.stringify(message)}\r\n\r\n`);
      response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [text("done")] } })}\n\n`);
      return undefined;
    });
    expect(await run(source, "shop/a")).toEqual({ content: [text("done")], isError: false });
  });

  it.each(["text/plain", "text/event-stream"])("is ToolsUnavailable for an error that never ends: %s", async (type) => {
    const { source } = await open([tool("a")], (_params, response) => {
      response.writeHead(503, { "content-type": type });
      const pump = (): void => {
        while (!response.destroyed && response.write(`data: ${"x".repeat(60_000)}\n\n`));
        if (!response.destroyed) response.once("drain", pump);
      };
      pump();
      return undefined;
    });
    await expect(run(source, "shop/a")).rejects.toThrow('MCP server "shop" cannot be used now (HTTP_503)');
  });

  it("is ToolsUnavailable, with its status, for a server that does not serve now", async () => {
    const { source } = await open([tool("a")], (_params, response) => void response.writeHead(503).end("hidden-word"));
    await expect(run(source, "shop/a")).rejects.toThrow('MCP server "shop" cannot be used now (HTTP_503)');
  });

  it.each([
    ["in JSON", "application/json", (message: string) => message],
    ["as an event", "text/event-stream", (message: string) => `data: ${message}\n\n`],
  ])("is an error result with the server's own words where it answers with an error, %s", async (_what, type, framed) => {
    const { source, telemetry } = await open([tool("a")], (_params, response, id) => {
      const error = { code: -32_603, message: "No such file: /reports/2031.txt. Use list_files first." };
      response.writeHead(200, { "content-type": type }).end(framed(JSON.stringify({ jsonrpc: "2.0", id, error })));
    });
    const words = "No such file: /reports/2031.txt. Use list_files first.";
    expect(await run(source, "shop/a")).toEqual({ content: [text(words)], isError: true });
    expect(JSON.stringify(telemetry.lines)).not.toContain("2031");
  });

  it.each([
    ["", "The server of this tool refused the call (RPC_-32603)"],
    ["x".repeat(10_000), "x".repeat(4000)],
  ])("of an error without words says its code, and of a long one as much as a model needs", async (message, words) => {
    const { source } = await open([tool("a")], (_params, response, id) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_603, message } }));
    });
    expect(await run(source, "shop/a")).toEqual({ content: [text(words)], isError: true });
  });
});
