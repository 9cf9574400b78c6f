import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { type Server as McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { createToolsServer, type HangingCalls } from "./mcp-tools-server.ts";

/** An MCP server over streamable HTTP, with sessions. */
export interface McpHttpServer {
  readonly url: string;
  readonly calls: HangingCalls;
  /** Headers of every request, in order. */
  readonly headers: readonly IncomingMessage["headers"][];
  /** How many sessions were begun, and how many their clients ended. */
  readonly sessions: { begun: number; ended: number };
  /** Number of opened streams for unrequested messages. */
  readonly streams: number;
  /** Forget every session, as a server does that was started anew. */
  forget(): void;
  close(): Promise<void>;
}

/** `createSessionServer` makes the server of each session. Default: `createToolsServer`. `forgotten`: the status of requests of unknown sessions. `at`: a port. `guard` answers requests that must not reach the server. */
export async function startMcpHttpServer(
  createSessionServer: (calls: HangingCalls) => McpServer = createToolsServer,
  {
    forgotten = 404,
    at = 0,
    guard,
  }: { readonly forgotten?: number; readonly at?: number; readonly guard?: (request: Request) => Response | undefined } = {},
): Promise<McpHttpServer> {
  const transports = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const calls: HangingCalls = { begun: 0, cancelled: 0 };
  const headers: IncomingMessage["headers"][] = [];
  const sessions = { begun: 0, ended: 0 };
  let streams = 0;

  const begin = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => `session-${++sessions.begun}`,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => {
        sessions.ended++;
        transports.delete(id);
      },
    });
    await createSessionServer(calls).connect(transport);
    return transport;
  };

  const host = await serveRequests(async (request, received) => {
    const refusal = guard?.(request);
    if (refusal) return refusal;
    headers.push(received);
    if (request.method === "GET") streams++;
    const id = received["mcp-session-id"];
    const known = typeof id === "string" ? transports.get(id) : await begin();
    return known ? known.handleRequest(request) : new Response(null, { status: forgotten });
  }, at);
  return {
    ...host,
    calls,
    headers,
    sessions,
    get streams() {
      return streams;
    },
    forget: () => transports.clear(),
  };
}

/** Serve a handler of web requests on a free port of this machine, or on this one. */
export async function serveRequests(
  handle: (request: Request, headers: IncomingMessage["headers"]) => Promise<Response>,
  at = 0,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const host = createServer(async (request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const answer = await handle(await toRequest(request, gone.signal), request.headers);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    if (!answer.body) return void response.end();
    const body = Readable.fromWeb(answer.body as never);
    body.on("error", () => response.destroy());
    response.on("close", () => body.destroy());
    body.pipe(response);
  });
  return {
    url: `http://127.0.0.1:${await listen(host, at)}/mcp`,
    async close() {
      host.closeAllConnections();
      host.close();
      await once(host, "close");
    },
  };
}

/** Let a server listen on a free port of this machine, or on this one. */
export async function listen(host: Server, port = 0): Promise<number> {
  host.listen(port, "127.0.0.1");
  await once(host, "listening");
  return (host.address() as AddressInfo).port;
}

async function toRequest(request: IncomingMessage, signal: AbortSignal): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = chunks.length > 0 ? Buffer.concat(chunks) : null;
  const { method = "GET", headers, url } = request;
  return new Request(`http://${headers.host}${url}`, { method, headers: headers as Record<string, string>, body, signal });
}
