import { type ConnectionsOptions, openConnections } from "./open-connections.ts";
import type { OutboundOptions } from "./outbound-options.ts";

/** `fetch`, for libraries that take one. */
export interface PatientFetch {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  close(): Promise<void>;
}

/** As in Node.js. */
const CONNECT_MS = 10_000;

/**
 * `fetch` without the limits of Node.js, which ends an answer that is silent for 300 s: the timeout of a call decides, and a session with
 * nothing to tell is kept. `lookup` resolves the names of servers that are called directly. Other runtimes use their own `fetch`, which reads the environment variables of proxies.
 */
export function createPatientFetch(outbound?: OutboundOptions, lookup?: ConnectionsOptions["lookup"]): PatientFetch {
  if (process.versions["bun"] !== undefined || process.versions["deno"] !== undefined) return { fetch, close: async () => {} };
  let opened: ReturnType<typeof open> | undefined;
  return {
    async fetch(url, init) {
      const { ask, connections } = await (opened ??= open(outbound, lookup));
      // The library is given an answer of this runtime's own kind.
      const { status, statusText, headers, body } = await ask(url, { ...(init as object), dispatcher: connections });
      return new Response(body as ReadableStream<Uint8Array> | null, { status, statusText, headers: [...headers] });
    },
    async close() {
      await (await opened)?.connections.destroy();
    },
  };
}

/** Loads at the first request: programs need no HTTP. */
async function open(outbound: OutboundOptions | undefined, lookup: ConnectionsOptions["lookup"]) {
  const { fetch: ask } = await import("undici/index.js");
  return { ask, connections: await openConnections({ outbound, lookup, connectMs: CONNECT_MS, headersMs: 0, idleMs: 0 }) };
}
