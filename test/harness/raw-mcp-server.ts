import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { listen } from "./mcp-http-server.ts";

export interface RawMcpRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: IncomingHttpHeaders;
}

/** Gives the result of a request; undefined when it has answered by itself, or does not answer. */
export type RawMcpAnswer = (params: Readonly<Record<string, unknown>>, response: ServerResponse, id: number) => unknown;

/** An MCP server by hand, over HTTP and without sessions: for answers that the official package would not give. */
export interface RawMcpServer {
  readonly url: string;
  readonly port: number;
  /** Every message that arrived, in order. */
  readonly requests: readonly RawMcpRequest[];
  close(): Promise<void>;
}

/** Offer `tools`, and answer calls with `call`. Other methods may be answered, too; `at` is a port to listen on. */
export async function startRawMcpServer(
  tools: readonly unknown[],
  call: RawMcpAnswer = () => ({ content: [] }),
  others: Readonly<Record<string, RawMcpAnswer>> = {},
  at = 0,
): Promise<RawMcpServer> {
  const requests: RawMcpRequest[] = [];
  const answers: Record<string, RawMcpAnswer> = {
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "raw", version: "1" },
    }),
    "tools/list": () => ({ tools }),
    "tools/call": call,
    ...others,
  };
  const host = createServer(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { id, method, params = {} } = JSON.parse(Buffer.concat(chunks).toString()) as RawMcpRequest & { id?: number };
    requests.push({ method, params, headers: request.headers });
    if (id === undefined) return void response.writeHead(202).end();
    const result = answers[method]?.(params, response, id);
    if (result === undefined) return;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  const port = await listen(host, at);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    requests,
    async close() {
      host.closeAllConnections();
      host.close();
      await once(host, "close");
    },
  };
}
