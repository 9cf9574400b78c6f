import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { Transport } from "@modelcontextprotocol/server";
import { listen } from "./mcp-http-server.ts";
import { createToolsServer, type HangingCalls } from "./mcp-tools-server.ts";
import { loadOracle } from "./oracle.ts";

interface SseTransport extends Transport {
  readonly sessionId: string;
  handlePostMessage(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

interface SseModule {
  readonly SSEServerTransport: new (endpoint: string, response: ServerResponse) => SseTransport;
}

/** An MCP server of the revision 2024-11-05 over HTTP, with the transport of the official package. */
export interface McpSseServer {
  readonly url: string;
  readonly port: number;
  readonly calls: HangingCalls;
  /** Every request, in order: its method, path and headers. */
  readonly requests: readonly { readonly method: string; readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** Number of open streams. */
  readonly streams: number;
  /** Forget the sessions of the open streams: their messages are answered with this status. */
  forget(status: number): void;
  /** End every stream, as a server does that is started again. */
  endStreams(): void;
  close(): Promise<void>;
}

/** `refused`: the status of a POST of Streamable HTTP. `accepts`: which requests have access; others get 401. */
export async function startMcpSseServer({
  refused = 405,
  accepts = () => true,
}: { readonly refused?: number; readonly accepts?: (headers: IncomingHttpHeaders) => boolean } = {}): Promise<McpSseServer> {
  const { SSEServerTransport } = await loadOracle<SseModule>("@modelcontextprotocol/sdk/server/sse.js");
  const transports = new Map<string, SseTransport>();
  const open = new Set<ServerResponse>();
  const requests: McpSseServer["requests"][number][] = [];
  const calls: HangingCalls = { begun: 0, cancelled: 0 };
  let forgotten = 404;
  const host = createServer(async (request, response) => {
    const url = new URL(request.url!, "http://localhost");
    requests.push({ method: request.method!, path: url.pathname, headers: request.headers });
    if (!accepts(request.headers)) return void response.writeHead(401).end("hidden-word");
    if (url.pathname === "/mcp" && request.method === "GET") {
      open.add(response);
      const transport = new SSEServerTransport("/messages", response);
      transports.set(transport.sessionId, transport);
      response.on("close", () => {
        open.delete(response);
        transports.delete(transport.sessionId);
      });
      return createToolsServer(calls).connect(transport);
    }
    if (url.pathname !== "/messages") return void response.writeHead(refused).end("hidden-word");
    const transport = transports.get(url.searchParams.get("sessionId") ?? "");
    if (!transport) return void response.writeHead(forgotten).end("hidden-word");
    return transport.handlePostMessage(request, response);
  });
  const port = await listen(host);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    calls,
    requests,
    get streams() {
      return open.size;
    },
    forget(status) {
      forgotten = status;
      transports.clear();
    },
    endStreams() {
      for (const response of open) response.end();
    },
    async close() {
      host.closeAllConnections();
      host.close();
      await once(host, "close");
    },
  };
}
