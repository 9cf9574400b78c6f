import { createServer } from "node:http";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { ports, Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { SseTransport } from "../../adapters/src/tools/mcp/sse-transport.ts";
import { listen, startMcpHttpServer } from "../harness/mcp-http-server.ts";
import { type McpSseServer, startMcpSseServer } from "../harness/mcp-sse-server.ts";
import { hasTools } from "../harness/oracle.ts";
import { run, useMcpTools } from "../harness/open-mcp-tools.ts";

const patient = { timeout: 30_000, interval: 20 };
const isPossible = hasTools("test/oracles", "Tests of MCP servers of 2024-11-05");

const { undo, open } = useMcpTools();

async function serve(options?: Parameters<typeof startMcpSseServer>[0]): Promise<McpSseServer> {
  const server = await startMcpSseServer(options);
  undo.push(() => server.close());
  return server;
}

async function greeting(source: ports.ToolSource): Promise<string> {
  const [part] = (await run(source, "shop/greet", { name: "Ada" })).content;
  return part?.type === "text" ? part.text : "";
}

/** Where this client sent its requests. */
const sentTo = ({ requests }: McpSseServer) => requests.map(({ method, path }) => `${method} ${path}`);

describe.skipIf(!isPossible)("an MCP server that supports only HTTP with server-sent events (2024-11-05)", () => {
  it.each([400, 404, 405])("is found when it refuses Streamable HTTP with %i, and its tools are called", async (refused) => {
    const server = await serve({ refused });
    const { source } = await open({ url: server.url });
    expect((await source.list()).map(({ id }) => id)).toContain("shop/greet");
    expect(await greeting(source)).toBe("Hello Ada");
    expect(sentTo(server)[0]).toBe("POST /mcp");
  });

  it("gets a message again with another token after 401, and its words are in no error", async () => {
    let accepted = "first";
    let current = "first";
    const server = await serve({ accepts: ({ authorization }) => authorization === `Bearer ${accepted}` });
    const tokens = async (refused?: string) => {
      if (refused === current) current = "second";
      return { token: current, connectedAt: 1 };
    };
    const place = { kind: "address", url: new URL(server.url), headers: {}, transport: "sse", outbound: undefined } as const;
    const transport = new SseTransport(place, tokens);
    undo.push(() => transport.close());
    await transport.start();
    accepted = "second";
    await transport.send({ jsonrpc: "2.0", id: 1, method: "ping" });
    expect(server.requests.at(-1)!.headers.authorization).toBe("Bearer second");
    accepted = "third";
    const refusal = transport.send({ jsonrpc: "2.0", id: 2, method: "ping" });
    await expect(refusal).rejects.toMatchObject({ status: 401, message: expect.not.stringContaining("hidden-word") });
  });

  it("is remembered: after its stream ended, no request of Streamable HTTP is sent again", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url });
    expect(await greeting(source)).toBe("Hello Ada");
    server.endStreams();
    await expect.poll(() => server.streams, patient).toBe(0);
    await expect.poll(() => greeting(source).catch(() => ""), patient).toBe("Hello Ada");
    expect(sentTo(server).filter((sent) => sent === "POST /mcp")).toHaveLength(1);
    expect(server.streams).toBe(1);
  });

  it("that supports Streamable HTTP later is found again", async () => {
    const server = await startMcpSseServer();
    const { source } = await open({ url: server.url });
    expect(await greeting(source)).toBe("Hello Ada");
    await server.close();
    const later = await startMcpHttpServer(undefined, { at: server.port });
    undo.push(() => later.close());
    await expect.poll(() => greeting(source).catch(() => ""), patient).toBe("Hello Ada");
    expect(later.sessions.begun).toBe(1);
  });

  it("is asked for Streamable HTTP again once its stream cannot be opened, also when a page answers", async () => {
    const server = await startMcpSseServer();
    const { source } = await open({ url: server.url });
    expect(await greeting(source)).toBe("Hello Ada");
    await server.close();
    const sent: string[] = [];
    const later = createServer((request, response) => {
      sent.push(request.method!);
      const isPage = request.method === "GET";
      response.writeHead(isPage ? 200 : 503, { "content-type": "text/html" }).end("a page");
    });
    await listen(later, server.port);
    undo.push(() => {
      later.closeAllConnections();
      later.close();
    });
    await expect
      .poll(
        () =>
          greeting(source).then(
            () => sent,
            () => sent,
          ),
        patient,
      )
      .toContain("POST");
    expect(sent[0]).toBe("GET");
  });

  it("is used at once if `transport` says so", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url, transport: "sse" });
    expect(await greeting(source)).toBe("Hello Ada");
    expect(sentTo(server)).not.toContain("POST /mcp");
  });

  it("is not tried if `transport` says http", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url, transport: "http" });
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    expect(sentTo(server)).not.toContain("GET /mcp");
    expect(source.problems?.()).toMatchObject([{ kind: "unavailable", message: expect.stringContaining("HTTP_405") }]);
  });

  it("gets its headers with every request, and the log does not", async () => {
    const server = await serve();
    const { source, telemetry } = await open({ url: server.url, headers: { authorization: new Secret("hidden-key") } });
    expect(await greeting(source)).toBe("Hello Ada");
    expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(new Set(["hidden-key"]));
    expect(JSON.stringify(telemetry.lines)).not.toContain("hidden");
  });

  it("that may be silent is limited by `callTimeoutMs`, and the call is cancelled there", async () => {
    const server = await serve();
    const clock = createManualClock();
    const { source } = await open({ url: server.url, callTimeoutMs: 5_000 }, manualClock({ clock }));
    const hanging = run(source, "shop/hang");
    await expect.poll(() => server.calls.begun, patient).toBe(1);
    await clock.advance(5_000);
    expect(await hanging).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("within 5 seconds") }] });
    await expect.poll(() => server.calls.cancelled, patient).toBe(1);
  });

  it("gets a call that its caller aborts cancelled", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url });
    const stopping = new AbortController();
    const hanging = run(source, "shop/hang", {}, stopping.signal).catch((error: unknown) => error);
    await expect.poll(() => server.calls.begun, patient).toBe(1);
    const reason = new Error("the turn was stopped");
    stopping.abort(reason);
    expect(await hanging).toBe(reason);
    await expect.poll(() => server.calls.cancelled, patient).toBe(1);
  });

  it("that ends its stream makes the call in flight ToolsUnavailable", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url });
    const hanging = run(source, "shop/hang").catch((error: unknown) => error);
    await expect.poll(() => server.calls.begun, patient).toBe(1);
    server.endStreams();
    expect(await hanging).toBeInstanceOf(ports.ToolsUnavailable);
  });

  it.each([404, 400])("that forgot the session (%i) gets the call in another one, without an error", async (status) => {
    const server = await serve();
    const { source } = await open({ url: server.url });
    await source.list();
    server.forget(status);
    expect(await greeting(source)).toBe("Hello Ada");
    await expect.poll(() => server.streams, patient).toBe(1);
    expect(sentTo(server).filter((sent) => sent === "GET /mcp")).toHaveLength(2);
  });

  it("that refuses a message is unavailable with the status, without the server's text", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url });
    await source.list();
    server.forget(503);
    await expect(greeting(source)).rejects.toThrow('MCP server "shop" cannot be used now (HTTP_503)');
  });

  it("finds a tool that came later", async () => {
    const server = await serve();
    const { source } = await open({ url: server.url });
    await run(source, "shop/grow");
    await expect.poll(async () => (await source.list()).map(({ id }) => id), patient).toContain("shop/grown");
  });

  it("has its stream closed with the app", async () => {
    const server = await serve();
    const { source, close } = await open({ url: server.url });
    await source.list();
    expect(server.streams).toBe(1);
    await close();
    await expect.poll(() => server.streams, patient).toBe(0);
  });
});

describe("an answer that is no stream of an MCP server of 2024-11-05", () => {
  const answering = async (answer: (method: string) => { status: number; type?: string; body: string }): Promise<string> => {
    const host = createServer((request, response) => {
      const { status, type = "text/plain", body } = answer(request.method!);
      response.writeHead(status, { "content-type": type });
      if (body === "endless") {
        const pump = (): void => {
          while (!response.destroyed && response.write(`data: ${"x".repeat(60_000)}\n`));
          if (!response.destroyed) response.once("drain", pump);
        };
        return pump();
      }
      if (body === "open") return response.flushHeaders();
      return response.end(body);
    });
    const port = await listen(host);
    undo.push(() => {
      host.closeAllConnections();
      host.close();
    });
    return `http://127.0.0.1:${port}/mcp`;
  };
  const stream = "text/event-stream";

  it.each([
    ["the same refusal", () => ({ status: 404, body: "hidden-word" }), "HTTP_404"],
    ["another refusal", (method: string) => ({ status: method === "GET" ? 401 : 405, body: "hidden-word" }), "HTTP_405"],
    [
      "a page",
      (method: string) => ({ status: method === "GET" ? 200 : 405, type: "text/html", body: "hidden-word" }),
      "NO_EVENT_STREAM",
    ],
    [
      "an event that never ends",
      (method: string) => ({ status: method === "GET" ? 200 : 405, type: stream, body: method === "GET" ? "endless" : "" }),
      "Error",
    ],
  ])("is a problem with a code, without the server's text: %s", async (_name, answer, code) => {
    const { source, telemetry } = await open({ url: await answering(answer) });
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    expect(source.problems?.()).toEqual([{ kind: "unavailable", message: `The MCP server cannot be reached (${code})` }]);
    expect(JSON.stringify(telemetry.lines)).not.toMatch(/hidden|messages/);
  });

  it("cannot have messages sent to another origin", async () => {
    let messages = 0;
    const other = await answering(() => ({ status: 202, body: String(messages++) }));
    const url = await answering((method) => ({
      status: method === "GET" ? 200 : 405,
      type: stream,
      body: method === "GET" ? `event: endpoint\ndata: ${other}\n\n` : "",
    }));
    const { source } = await open({ url, headers: { authorization: new Secret("hidden-key") } });
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    expect(messages).toBe(0);
  });

  it("is waited for no longer than connecting may take", async () => {
    const url = await answering((method) => ({ status: method === "GET" ? 200 : 405, type: stream, body: "open" }));
    const { source } = await open({ url, connectTimeoutMs: 300 });
    await expect(source.list()).rejects.toThrow(ports.ToolsUnavailable);
    expect(source.problems?.()).toMatchObject([{ message: "The MCP server cannot be reached (TimeoutError)" }]);
  });
});
