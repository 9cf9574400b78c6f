import type { LookupFunction } from "node:net";
import { defineAdapter, ports } from "@portico/core";
import { createHttpClient, type HttpTimeouts } from "./http/http-client.ts";
import { addressRefused } from "./http/http-failure.ts";
import { type HttpInput, httpInput, requestFaults, urlFaults } from "./http/http-input.ts";
import { readUrl } from "./http/read-url.ts";

export interface HttpNodeOptions {
  /** What workflows may reach beside the public internet: `host`, `host:port`, an address, or a network (`10.0.0.0/8`). Default: nothing. */
  readonly allow?: readonly string[];
  /** Default: 10 s to connect, 120 s until an answer begins, 60 s of silence inside it. */
  readonly timeouts?: Partial<HttpTimeouts>;
  /** How names are resolved; default: as this machine does. Asked for all addresses of a name. */
  readonly lookup?: LookupFunction;
}

const DEFAULT_TIMEOUTS: HttpTimeouts = { connectMs: 10_000, headersMs: 120_000, idleMs: 60_000 };

/**
 * Nodes that call an HTTP service: `{ status, headers, body }`. Addresses that are not the public internet's are refused, after resolution
 * and after each redirect, unless `allow` names them. Opening throws a TypeError for an entry of `allow` that is none.
 */
export const httpNode = defineAdapter({
  name: "workflow-nodes/http",
  port: ports.workflowNodes,
  needs: {},
  open(_given, { allow = [], timeouts, lookup }: HttpNodeOptions, scope): ports.WorkflowNode<HttpInput> {
    const client = createHttpClient(allow, { ...DEFAULT_TIMEOUTS, ...timeouts }, lookup);
    scope.onClose(() => client.close());
    return {
      type: "http",
      input: httpInput,
      check: (written) => [...urlFaults(written["url"], client.guard), ...requestFaults(written)],
      repeatable: ({ method, key }) => key !== false || method === "GET" || method === "HEAD",
      async run({ input, step, signal }) {
        signal.throwIfAborted();
        const fault = requestFaults(input)[0];
        if (fault)
          throw new ports.NodeFailed("http_request_invalid", `${fault.path.join(".")}: ${fault.message}`, { retryable: false });
        return client.send(
          {
            method: input.method,
            url: addressOf(input),
            headers: headersOf(input, step),
            body: input.body === undefined || typeof input.body === "string" ? input.body : JSON.stringify(input.body),
            isExpected: (status) => (input.expect ?? ["200-299"]).some((expected) => isWithin(expected, status)),
          },
          signal,
        );
      },
    };
  },
});

function addressOf({ url: text, query = {} }: HttpInput): URL {
  const url = readUrl(text);
  if (typeof url === "string") throw addressRefused(url);
  for (const [name, values] of Object.entries(query))
    for (const value of [values].flat()) url.searchParams.append(name, String(value));
  return url;
}

function headersOf({ headers = {}, body, key }: HttpInput, { runId, nodeId, attempt }: ports.NodeStep): Record<string, string> {
  const type = typeof body === "string" ? "text/plain;charset=utf-8" : "application/json";
  return {
    accept: "*/*",
    "accept-encoding": "identity",
    "user-agent": "portico",
    ...(body !== undefined && { "content-type": type }),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])),
    ...(key !== false && { "idempotency-key": keyOf([runId, nodeId, ...(key === "node" ? [] : [String(attempt)])]) }),
  };
}

function keyOf(parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join(":");
}

function isWithin(expected: number | string, status: number): boolean {
  const [from, to = from] = String(expected).split("-").map(Number);
  return status >= from! && status <= to!;
}
