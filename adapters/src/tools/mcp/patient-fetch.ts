import type { FetchLike } from "@modelcontextprotocol/client";
import type { Agent } from "undici/index.js";
import { keptConnections } from "../../kept-connections.ts";

/** Requests of one connection to a server. */
export interface PatientFetch {
  readonly fetch: FetchLike;
  close(): Promise<void>;
}

/**
 * `fetch` without the limits of Node.js, which ends an answer that is silent for 300 s: the timeout of a call decides, and a session with
 * nothing to tell is kept. Other runtimes use their own `fetch`.
 */
export function createPatientFetch(): PatientFetch {
  if (process.versions["bun"] !== undefined || process.versions["deno"] !== undefined) return { fetch, close: async () => {} };
  let opened: ReturnType<typeof open> | undefined;
  return {
    async fetch(url, init) {
      const { ask, agent } = await (opened ??= open());
      // The library is given an answer of this runtime's own kind.
      const { status, statusText, headers, body } = await ask(url, { ...(init as object), dispatcher: agent });
      return new Response(body as ReadableStream<Uint8Array> | null, { status, statusText, headers: [...headers] });
    },
    async close() {
      await (await opened)?.agent.destroy();
    },
  };
}

/** Loads at the first request: programs need no HTTP. */
async function open() {
  const { Agent: KeepingAgent, Client, fetch: ask, Pool } = await import("undici/index.js");
  const connection = keptConnections(Client);
  const factory: Agent.Options["factory"] = (origin, options) => new Pool(origin, { ...options, factory: connection });
  return { ask, agent: new KeepingAgent({ headersTimeout: 0, bodyTimeout: 0, factory }) };
}
