import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { createToolsServer, type HangingCalls } from "./mcp-tools-server.ts";

/** An MCP server over streamable HTTP, with sessions. */
export interface McpHttpServer {
  readonly url: string;
  readonly calls: HangingCalls;
  /** Headers of every request, in order. */
  readonly headers: readonly IncomingMessage["headers"][];
  /** How many sessions were begun, and how many their clients ended. */
  readonly sessions: { begun: number; ended: number };
  /** Forget every session, as a server does that was started anew. */
  forget(): void;
  close(): Promise<void>;
}

export async function startMcpHttpServer(): Promise<McpHttpServer> {
  const transports = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const calls: HangingCalls = { begun: 0, cancelled: 0 };
  const headers: IncomingMessage["headers"][] = [];
  const sessions = { begun: 0, ended: 0 };

  const begin = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => `session-${++sessions.begun}`,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => {
        sessions.ended++;
        transports.delete(id);
      },
    });
    await createToolsServer(calls).connect(transport);
    return transport;
  };

  const host = createServer(async (request, response) => {
    headers.push(request.headers);
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? transports.get(id) : await begin();
    if (!known) return void response.writeHead(404).end();
    const answer = await known.handleRequest(await toRequest(request));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    if (!answer.body) return void response.end();
    Readable.fromWeb(answer.body as never)
      .on("error", () => response.destroy())
      .pipe(response);
  });
  return {
    url: `http://127.0.0.1:${await listen(host)}/mcp`,
    calls,
    headers,
    sessions,
    forget: () => transports.clear(),
    async close() {
      host.closeAllConnections();
      host.close();
      await once(host, "close");
    },
  };
}

export async function listen(host: Server): Promise<number> {
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  return (host.address() as AddressInfo).port;
}

async function toRequest(request: IncomingMessage): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = chunks.length > 0 ? Buffer.concat(chunks) : null;
  const { method = "GET", headers, url } = request;
  return new Request(`http://${headers.host}${url}`, { method, headers: headers as Record<string, string>, body });
}
