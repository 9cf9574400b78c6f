import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpTools, type McpToolsOptions } from "@portico/adapters/tools/mcp";
import { type Adapter, createLive, defineAdapter, ports, Secret } from "@portico/core";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici/index.js";
import { describe, expect, it } from "vitest";
import { serveRequests, startMcpHttpServer } from "../harness/mcp-http-server.ts";
import { createToolsServer, type HangingCalls } from "../harness/mcp-tools-server.ts";
import { startRawMcpServer } from "../harness/raw-mcp-server.ts";
import { openAdapter } from "./open-adapter.ts";
import { type OpenMcpTools, run, useMcpTools } from "../harness/open-mcp-tools.ts";

const program = { command: process.execPath, args: [join(import.meta.dirname, "processes/mcp-server.ts")] };
const stubborn = { ...program, args: [...program.args, "stubborn"] };
const patient = { timeout: 30_000, interval: 20 };

const { undo, open } = useMcpTools();

async function said(result: Promise<ports.ToolResult>): Promise<string> {
  const [part] = (await result).content;
  return part?.type === "text" ? part.text : "";
}

async function callsOf(source: ports.ToolSource): Promise<HangingCalls & { readonly pid: number }> {
  return JSON.parse(await said(run(source, "shop/calls"))) as HangingCalls & { readonly pid: number };
}

const begun = (source: ports.ToolSource) => expect.poll(async () => (await callsOf(source)).begun, patient).toBe(1);
const connections = ({ telemetry }: OpenMcpTools) =>
  telemetry.lines.filter(({ message }) => message === "MCP server is connected").length;

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("other secrets of an MCP server, while the app is open", () => {
  it("are used for later calls, in a session of their own; a call in progress finishes in the earlier one", async () => {
    const server = await startMcpHttpServer();
    undo.push(() => server.close());
    const headersOf = (word: string) => ({ headers: { authorization: new Secret(word) } });
    const rotation = createLive<Pick<McpToolsOptions, "headers"> | undefined>(headersOf("key-1"));
    const { source } = await open({ url: server.url, ...headersOf("key-1"), rotation });
    const stopping = new AbortController();
    const hanging = run(source, "shop/hang", {}, stopping.signal).catch((error: unknown) => error);
    await expect.poll(() => server.calls.begun, patient).toBe(1);
    await rotation.replace(headersOf("key-1"));
    await rotation.replace(undefined);
    expect(server.sessions.begun).toBe(1);
    await rotation.replace(headersOf("key-2"));
    expect(await said(run(source, "shop/greet", { name: "Ada" }))).toBe("Hello Ada");
    expect([server.headers[0]?.authorization, server.headers.at(-1)?.authorization]).toEqual(["key-1", "key-2"]);
    expect([server.calls.cancelled, server.sessions.ended]).toEqual([0, 0]);
    stopping.abort();
    await hanging;
    await expect.poll(() => server.sessions.ended, patient).toBe(1);
    expect(await said(run(source, "shop/greet", { name: "Ada" }))).toBe("Hello Ada");
  });

  it("start the program again for later calls; the earlier one ends after its calls, or when the app closes", async () => {
    const envOf = (word: string) => ({ env: { OWN: new Secret(word) } });
    const rotation = createLive<Pick<McpToolsOptions, "env">>(envOf("one"));
    const { source, close } = await open({ ...program, ...envOf("one"), rotation });
    const environment = (pid: number) => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    const { pid } = await callsOf(source);
    const hanging = run(source, "shop/hang").catch((error: unknown) => error);
    await begun(source);
    await rotation.replace(envOf("two"));
    const { pid: next } = await callsOf(source);
    expect(next).not.toBe(pid);
    expect([environment(pid).includes("OWN=one"), environment(next).includes("OWN=two")]).toEqual([true, true]);
    await close();
    await hanging;
    expect([isAlive(pid), isAlive(next)]).toEqual([false, false]);
  });

  it("are refused if they are invalid, and are taken while a connection is opened", async () => {
    const server = await startMcpHttpServer();
    undo.push(() => server.close());
    const rotation = createLive<Pick<McpToolsOptions, "headers">>({});
    const { source } = await open({ url: server.url, rotation });
    await rotation.replace({ headers: { authorization: "key-1" } });
    expect(await said(run(source, "shop/greet", { name: "Ada" }))).toBe("Hello Ada");
    expect(server.headers.at(-1)?.authorization).toBe("key-1");
    const refused = rotation.replace({ headers: { authorization: "hidden\nword" } });
    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.not.toThrow("hidden");
    expect(await said(run(source, "shop/greet", { name: "Ada" }))).toBe("Hello Ada");
  });
});

describe("a call of an MCP server", () => {
  it("that takes too long is an error result, and cancelled at the server", async () => {
    const clock = createManualClock();
    const { source } = await open({ ...program, callTimeoutMs: 5_000 }, manualClock({ clock }));
    const hanging = run(source, "shop/hang");
    await begun(source);
    await clock.advance(5_000);
    expect(await hanging).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("within 5 seconds") }] });
    await expect.poll(async () => (await callsOf(source)).cancelled, patient).toBe(1);
  });

  it("restarts its timeout with every progress message", async () => {
    const counted = { refreshes: 0 };
    const { source } = await open(program, countingClock(counted));
    expect(await said(run(source, "shop/knock", { times: 3 }))).toBe("knocked");
    expect(counted.refreshes).toBe(3);
  });

  it.each(["over standard input and output", "over HTTP"])("that is aborted is cancelled at the server, %s", async (way) => {
    const server = await startMcpHttpServer();
    undo.push(() => server.close());
    const { source } = await open(way === "over HTTP" ? { url: server.url } : program);
    const stopping = new AbortController();
    const hanging = run(source, "shop/hang", {}, stopping.signal).catch((error: unknown) => error);
    await begun(source);
    const reason = new Error("the turn was stopped");
    stopping.abort(reason);
    expect(await hanging).toBe(reason);
    await expect.poll(async () => (await callsOf(source)).cancelled, patient).toBe(1);
  });

  it("finds a tool that came later, once the server said that its list has changed", async () => {
    const server = await startMcpHttpServer();
    undo.push(() => server.close());
    for (const place of [program, { url: server.url }]) {
      const { source } = await open(place);
      await expect(run(source, "shop/grown")).rejects.toThrow(ports.ToolNotFound);
      // Over HTTP the stream that tells of changes opens beside the handshake.
      await expect
        .poll(async () => {
          await run(source, "shop/grow");
          return (await source.list()).map(({ id }) => id);
        }, patient)
        .toContain("shop/grown");
    }
  });
});

/** A server by hand: its tool sends a request to the client, and returns the client's answer as text. */
const asking = `
  const send = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));
  let called;
  require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params, ...answer } = JSON.parse(line);
    const { protocolVersion } = params ?? {};
    if (method === "initialize")
      send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "asking", version: "1" } } });
    else if (method === "tools/list") send({ id, result: { tools: [{ name: "ask", inputSchema: { type: "object" } }] } });
    else if (method === "tools/call") {
      called = id;
      send({ id: "asked", method: params.arguments.method, params: params.arguments.params });
    } else if (id === "asked") send({ id: called, result: { content: [{ type: "text", text: JSON.stringify(answer) }] } });
  });`;

describe("a request of an MCP server to its client", () => {
  const message = { role: "user", content: { type: "text", text: "hello" } };
  it.each([
    ["sampling/createMessage", { messages: [message], maxTokens: 10 }],
    ["elicitation/create", { message: "Your name?", requestedSchema: { type: "object", properties: {} } }],
    ["roots/list", {}],
  ])("is refused with the protocol's own answer: %s", async (method, params) => {
    const { source } = await open({ command: process.execPath, args: ["-e", asking] });
    const answer = JSON.parse(await said(run(source, "shop/ask", { method, params })));
    expect(answer).toMatchObject({ error: { code: -32_601 } });
  });
});

describe("an MCP server over HTTP that is silent", () => {
  it("keeps its call, whatever limit the runtime has for silent answers", async () => {
    const runtimeOwn = getGlobalDispatcher();
    const impatient = new Agent({ headersTimeout: 1, bodyTimeout: 1 });
    undo.push(() => impatient.destroy());
    const silentMs = 3_000;
    const server = await startRawMcpServer([{ name: "late", inputSchema: { type: "object" } }], (_params, response, id) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": here\n\n");
      const result = { content: [{ type: "text", text: "at last" }] };
      setTimeout(() => response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`), silentMs);
    });
    undo.push(() => server.close());
    setGlobalDispatcher(impatient);
    undo.push(() => setGlobalDispatcher(runtimeOwn));
    const { source } = await open({ url: server.url });
    expect(await said(run(source, "shop/late"))).toBe("at last");
  });
});

describe("the connection to an MCP server", () => {
  it("is renewed when its program ends, at the latest after a pause, and the call in flight is ToolsUnavailable", async () => {
    const clock = createManualClock();
    const opened = await open(program, manualClock({ clock }));
    const { pid } = await callsOf(opened.source);
    await expect(run(opened.source, "shop/leave")).rejects.toThrow(ports.ToolsUnavailable);
    expect(connections(opened)).toBe(1);
    // Slowly: the same clock limits how long the new program may take to answer.
    await expect
      .poll(
        async () => {
          await clock.advance(500);
          return connections(opened);
        },
        { timeout: 40_000, interval: 1000 },
      )
      .toBe(2);
    expect((await callsOf(opened.source)).pid).not.toBe(pid);
  });

  it("is renewed immediately on request", async () => {
    const { source } = await open(program, manualClock({ clock: createManualClock() }));
    const { pid } = await callsOf(source);
    process.kill(pid, "SIGKILL");
    await expect.poll(() => isAlive(pid), patient).toBe(false);
    await expect.poll(async () => (await callsOf(source).catch(() => ({ pid }))).pid, patient).not.toBe(pid);
  });

  it("is renewed when its program has ended, though another one holds what it wrote to", async () => {
    const { source } = await open(program);
    const { pid } = await callsOf(source);
    const hanging = run(source, "shop/hang").catch((error: unknown) => error);
    const heir = Number(await said(run(source, "shop/bequeath")));
    undo.push(() => process.kill(heir));
    await expect.poll(() => isAlive(pid), patient).toBe(false);
    await expect(callsOf(source)).rejects.toThrow(ports.ToolsUnavailable);
    expect(await hanging).toBeInstanceOf(ports.ToolsUnavailable);
    expect((await callsOf(source)).pid).not.toBe(pid);
  });

  it.each([404, 400])("is renewed if the server has lost the session (%i), without an error for callers", async (forgotten) => {
    const server = await startMcpHttpServer(undefined, { forgotten });
    undo.push(() => server.close());
    const { source } = await open({ url: server.url });
    expect(await said(run(source, "shop/greet", { name: "Ada" }))).toBe("Hello Ada");
    server.forget();
    expect(await said(run(source, "shop/greet", { name: "Bob" }))).toBe("Hello Bob");
    expect(server.sessions.begun).toBe(2);
  });

  it("a server over HTTP that goes away is noticed without a call", async () => {
    const server = await startMcpHttpServer();
    const { source, telemetry } = await open({ url: server.url });
    await source.list();
    // The stream that tells of changes: it opens beside the handshake.
    await expect.poll(() => server.streams, patient).toBe(1);
    await server.close();
    const lost = () => telemetry.lines.find(({ level }) => level === "warn");
    await expect.poll(lost, patient).toMatchObject({ message: "MCP server is not connected", fields: { server: "shop" } });
  });

  it("does not delay the app if the server is unavailable, and connects later", async () => {
    const first = await startRawMcpServer([]);
    await first.close();
    const { source, telemetry } = await open({ url: first.url });
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    await expect(run(source, "shop/a")).rejects.toThrow(ports.ToolsUnavailable);
    expect(telemetry.lines[0]).toMatchObject({ level: "warn", fields: { server: "shop", code: "ECONNREFUSED" } });
    const second = await startRawMcpServer([{ name: "a", inputSchema: { type: "object" } }], undefined, {}, first.port);
    undo.push(() => second.close());
    await expect
      .poll(
        () =>
          source.list().then(
            (tools) => tools.map(({ id }) => id),
            () => [],
          ),
        patient,
      )
      .toEqual(["shop/a"]);
    expect(source.problems?.()).toEqual([]);
  });

  it("that hangs in its handshake is waited for once, and answers at the next call when it is back", async () => {
    const clock = createManualClock();
    let isBack = false;
    const silent = await startRawMcpServer([{ name: "a", inputSchema: { type: "object" } }], undefined, {
      initialize: ({ protocolVersion }) =>
        isBack ? { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "raw", version: "1" } } : undefined,
    });
    undo.push(() => silent.close());
    const { source } = await open({ url: silent.url, connectTimeoutMs: 1_000 }, manualClock({ clock }));
    const first = source.list().catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await first).toBeInstanceOf(ports.ToolsUnavailable);
    expect(source.problems?.()).toEqual([{ kind: "unavailable", message: "The MCP server cannot be reached (TimeoutError)" }]);
    // The clock does not advance: nothing waits.
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    await expect(run(source, "shop/a")).rejects.toThrow(ports.ToolsUnavailable);
    expect([source.owns?.("shop/a"), source.owns?.("other/a")]).toEqual([true, false]);
    isBack = true;
    await clock.advance(1_000);
    await expect
      .poll(
        () =>
          source.list().then(
            (tools) => tools.length,
            () => 0,
          ),
        patient,
      )
      .toBe(1);
  });

  it("is not waited for longer than its limit, and a caller that aborts earlier is not delayed", async () => {
    const clock = createManualClock();
    const silent = await startRawMcpServer([], undefined, { initialize: () => undefined });
    undo.push(() => silent.close());
    const { source } = await open({ url: silent.url, connectTimeoutMs: 1_000 }, manualClock({ clock }));
    const stopping = new AbortController();
    const left = source.list(stopping.signal);
    const waiting = source.list().catch((error: unknown) => error);
    stopping.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    await clock.advance(1_000);
    expect(await waiting).toBeInstanceOf(ports.ToolsUnavailable);
  });

  it("reads a program that writes a byte order mark before its first message", async () => {
    const program = `
      process.stdout.write("\\uFEFF");
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method, params } = JSON.parse(line);
        const result = method === "initialize"
          ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } }
          : { tools: [{ name: "a", inputSchema: { type: "object" } }] };
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
      });`;
    const { source } = await open({ command: process.execPath, args: ["-e", program] });
    expect((await source.list()).map(({ id }) => id)).toEqual(["shop/a"]);
  });

  it("is ToolsUnavailable for a program that is not there", async () => {
    const { source, telemetry } = await open({ command: join(tmpdir(), "no-such-program") });
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    expect(telemetry.lines[0]?.fields).toEqual({ server: "shop", code: "ENOENT" });
  });

  it("speaks to a server that knows the protocol of 2026-07-28 alone", async () => {
    const calls = { begun: 0, cancelled: 0 };
    const lists: unknown[] = [];
    const handler = createMcpHandler(() => createToolsServer(calls), { legacy: "reject" });
    const server = await serveRequests((request, headers) => {
      if (headers["mcp-method"] === "tools/list") lists.push(headers);
      return handler.fetch(request);
    });
    undo.push(
      () => server.close(),
      () => handler.close(),
    );
    const { source } = await open({ url: server.url });
    expect((await source.list()).map(({ id }) => id)).toContain("shop/greet");
    expect(await said(run(source, "shop/greet", { name: "Ada" }))).toBe("Hello Ada");
    const stopping = new AbortController();
    const hanging = run(source, "shop/hang", {}, stopping.signal).catch((error: unknown) => error);
    await expect.poll(() => calls.begun, patient).toBe(1);
    stopping.abort(new Error("enough"));
    expect(await hanging).toBe(stopping.signal.reason);
    await expect.poll(() => calls.cancelled, patient).toBe(1);
    handler.notify.toolsChanged();
    await expect
      .poll(async () => {
        await source.list();
        return lists.length;
      }, patient)
      .toBe(2);
  });

  it("sends its headers with every request, and does not log them", async () => {
    const server = await startMcpHttpServer();
    undo.push(() => server.close());
    const { source, telemetry } = await open({ url: server.url, headers: { authorization: new Secret("Bearer hidden-word") } });
    await run(source, "shop/greet", { name: "Ada" });
    for (const headers of server.headers) expect(headers.authorization).toBe("Bearer hidden-word");
    expect(JSON.stringify(telemetry.lines)).not.toContain("hidden-word");
  });
});

describe("closing", () => {
  it("ends the program, and the calls in flight as ToolsUnavailable", async () => {
    const { source, close } = await open(program);
    const { pid } = await callsOf(source);
    const hanging = run(source, "shop/hang").catch((error: unknown) => error);
    await begun(source);
    await close();
    expect(await hanging).toBeInstanceOf(ports.ToolsUnavailable);
    expect(isAlive(pid)).toBe(false);
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    await expect(run(source, "shop/greet", { name: "Ada" })).rejects.toThrow(ports.ToolsUnavailable);
  });

  it("kills a program that does not end when it is asked to", async () => {
    const clock = createManualClock();
    const { source, close } = await open(stubborn, manualClock({ clock }));
    const { pid } = await callsOf(source);
    const closing = close();
    await clock.advance(2_000);
    await closing;
    await expect.poll(() => isAlive(pid), patient).toBe(false);
  });

  it("leaves no program behind that was still connecting", async () => {
    const folder = await mkdtemp(join(tmpdir(), "portico-mcp-"));
    undo.push(() => rm(folder, { recursive: true }));
    const file = join(folder, "pid");
    const mute = 'require("fs").writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000)';
    const { source, close } = await open({ command: process.execPath, args: ["-e", mute, file] });
    const waiting = source.list().catch((error: unknown) => error);
    await expect.poll(() => existsSync(file) && readFileSync(file, "utf8") !== "", patient).toBe(true);
    await close();
    expect(await waiting).toBeInstanceOf(ports.ToolsUnavailable);
    expect(isAlive(Number(readFileSync(file, "utf8")))).toBe(false);
  });

  it("is never too early: right after opening nothing is started any more", async () => {
    for (const place of [program, { url: "http://127.0.0.1:9/mcp" }]) {
      const { source, close } = await open(place);
      await close();
      await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    }
  });

  it("tells a server over HTTP that the session has ended", async () => {
    const server = await startMcpHttpServer();
    undo.push(() => server.close());
    const { source, close } = await open({ url: server.url });
    await source.list();
    await close();
    expect(server.sessions).toEqual({ begun: 1, ended: 1 });
  });
});

describe("options that fit no server", () => {
  it.each<[string, McpToolsOptions]>([
    ["neither a command nor a url", { id: "shop" }],
    ["both", { id: "shop", command: "a", url: "http://127.0.0.1" }],
    ["headers of a program", { id: "shop", command: "a", headers: {} }],
    ["a transport of a program", { id: "shop", command: "a", transport: "sse" }],
    ["arguments of an address", { id: "shop", url: "http://127.0.0.1", args: [] }],
    ["an address that is none", { id: "shop", url: "hidden-word" }],
    ["an address of another kind", { id: "shop", url: "file:///hidden-word" }],
    ["an address with a password", { id: "shop", url: "http://me:hidden-word@127.0.0.1" }],
    ["a name that would not fit an id", { id: "a shop", command: "a" }],
    ["a header's value that HTTP does not take", { id: "shop", url: "http://127.0.0.1", headers: { key: "hidden-word\nmore" } }],
    ["a header's name that HTTP does not take", { id: "shop", url: "http://127.0.0.1", headers: { "hidden-word:": "x" } }],
    ["a program without a name", { id: "shop", command: "" }],
    ["a variable that no program can have", { id: "shop", command: "a", env: { KEY: new Secret("hidden-word\0") } }],
    ["an argument that no program can have", { id: "shop", command: "a", args: ["hidden-word\0"] }],
  ])("are refused when it opens: %s", async (_name, options) => {
    const opening = openAdapter(mcpTools(options), [systemClock(), memoryTelemetry({})]);
    await expect(opening).rejects.toThrow(TypeError);
    await expect(opening).rejects.not.toThrow("hidden-word");
  });

  it("are a RangeError for an invalid time", async () => {
    const opening = openAdapter(mcpTools({ id: "shop", command: "a", callTimeoutMs: 0 }), [systemClock(), memoryTelemetry({})]);
    await expect(opening).rejects.toThrow(RangeError);
  });
});

/** Time that does not advance, and the number of restarted timers. */
function countingClock(counted: { refreshes: number }): Adapter {
  const clock = createManualClock();
  const after: ports.Clock["after"] = (ms, run) => {
    const timer = clock.after(ms, run);
    return { cancel: () => timer.cancel(), refresh: () => void counted.refreshes++ };
  };
  return defineAdapter({
    name: "clock/counting",
    port: ports.clock,
    needs: {},
    open: (): ports.Clock => ({ now: () => clock.now(), sleep: clock.sleep, after }),
  })();
}
