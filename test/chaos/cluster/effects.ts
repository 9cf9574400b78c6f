import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/server";
import { startMcpHttpServer } from "../../harness/mcp-http-server.ts";

/** The external systems. They count the effects of calls. Their servers run in this process and never fail. */
export interface Effects extends AsyncDisposable {
  /** Address of an HTTP server: `POST /NAME` with `{ n, run }` has an effect. */
  readonly url: string;
  /** Address of an MCP server. Its tool `act` `{ text }` has an effect and may not be repeated. */
  readonly mcpUrl: string;
  /** Count an effect that may not be repeated. */
  add(name: string): void;
  /** How often an effect that may not be repeated took place. */
  times(name: string): number;
  /** The names of effects that took place more than once. */
  twice(): readonly string[];
  /** The number of effects with different `Idempotency-Key`s. */
  keys(name: string): number;
  /** All effects, and how many requests repeated a known `Idempotency-Key`. */
  readonly counts: { readonly effects: number; readonly repeatedKeys: number };
}

/** The longest time that an effect takes. */
const SLOW_MS = 300;

export async function startEffects(): Promise<Effects> {
  const done = new Map<string, number>();
  const keys = new Map<string, Set<string>>();
  let repeatedKeys = 0;
  const add = (name: string) => void done.set(name, (done.get(name) ?? 0) + 1);

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { n, run } = JSON.parse(Buffer.concat(chunks).toString()) as { n: number; run: string };
    const name = request.url!.slice(1);
    const key = request.headers["idempotency-key"];
    if (typeof key === "string") {
      const known = keys.get(`${name} ${n}`) ?? new Set();
      keys.set(`${name} ${n}`, known);
      if (known.has(key)) repeatedKeys++;
      known.add(key);
    } else add(`${name} ${run}`);
    await sleep(Math.random() * SLOW_MS);
    response.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const mcp = await startMcpHttpServer(() => actingServer(add));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mcpUrl: mcp.url,
    add,
    times: (name) => done.get(name) ?? 0,
    twice: () => [...done].filter(([, times]) => times > 1).map(([name]) => name),
    keys: (name) => keys.get(name)?.size ?? 0,
    get counts() {
      return { effects: done.size + [...keys.values()].reduce((sum, { size }) => sum + size, 0), repeatedKeys };
    },
    async [Symbol.asyncDispose]() {
      await mcp.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

function actingServer(add: (name: string) => void): Server {
  const server = new Server({ name: "effects", version: "1" }, { capabilities: { tools: {} } });
  const inputSchema = { type: "object" as const, properties: { text: { type: "string" as const } }, required: ["text"] };
  server.setRequestHandler("tools/list", () => ({ tools: [{ name: "act", description: "Has an effect", inputSchema }] }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    const text = String(params.arguments?.["text"]);
    add(`tool ${text}`);
    await sleep(Math.random() * SLOW_MS);
    return { content: [{ type: "text", text: `did ${text}` }] };
  });
  return server;
}
