import type { LookupFunction } from "node:net";
import type { OutboundOptions } from "@portico/adapters/outbound/outbound-options";
import { defineWorkflowNode, ports } from "@portico/core";
import { createAddressGuard } from "@portico/adapters/outbound/address-guard";
import { bodyOf, filesFor, type HttpBody } from "./http/http-body.ts";
import { createHttpClient, type HttpTimeouts } from "./http/http-client.ts";
import { addressRefused } from "./http/http-failure.ts";
import { type HttpInput, httpInput, requestFaults, urlFaults } from "./http/http-input.ts";
import { readUrl } from "./http/read-url.ts";

/** Options of `httpNode`. */
export interface HttpNodeOptions {
  /**
   * Hosts that workflows may call besides the public internet: `host`, `host:port`, an address, or a network (`10.0.0.0/8`).
   * Default: none.
   */
  readonly allow?: readonly string[];
  /** Default: 10 s to connect, 120 s until an answer begins, 60 s idle within the answer. */
  readonly timeouts?: Partial<HttpTimeouts>;
  /** How names are resolved. Default: with the machine's resolver. Called for all addresses of a name. */
  readonly lookup?: LookupFunction;
  /**
   * A proxy, and authorities. Through a proxy, names that this machine does not know are the proxy's to check: it should have rules of its own.
   * Default: direct connections, and the authorities of Node.js.
   */
  readonly outbound?: OutboundOptions | undefined;
}

const DEFAULT_TIMEOUTS: HttpTimeouts = { connectMs: 10_000, headersMs: 120_000, idleMs: 60_000 };

/**
 * Nodes that call an HTTP service: `{ status, headers, body }`, and `file` if the body became a file of the run. Addresses outside of the public internet are refused, after
 * resolution and after each redirect, unless `allow` names them. Opening throws a TypeError for an invalid entry of `allow`.
 */
export const httpNode = defineWorkflowNode({
  name: "workflow-nodes/http",
  needs: { telemetry: ports.telemetry },
  rules({ allow = [] }: HttpNodeOptions): ports.NodeRules<HttpInput> {
    const guard = createAddressGuard(allow);
    return {
      type: "http",
      input: httpInput,
      check: (written) => [...urlFaults(written["url"], guard), ...requestFaults(written, { isWritten: true })],
      repeatable: ({ method, key }) => key !== false || method === "GET" || method === "HEAD",
    };
  },
  open({ telemetry }, { allow = [], timeouts, lookup, outbound }: HttpNodeOptions, scope) {
    const client = createHttpClient({ ...DEFAULT_TIMEOUTS, ...timeouts, allow, lookup, outbound });
    scope.onClose(() => client.close());
    return {
      async run({ input, step, signal, files, isSecret = () => false }: ports.NodeWork<HttpInput>) {
        signal.throwIfAborted();
        const fault = requestFaults(input, { isWritten: false })[0];
        if (fault)
          throw new ports.NodeFailed("http_request_invalid", `${fault.path.join(".")}: ${fault.message}`, { retryable: false });
        const body = await bodyOf(input, files);
        const isFile = input.response === "file";
        return client.send(
          {
            method: input.method,
            url: addressOf(input),
            headers: headersOf(input, body, step, telemetry.traceparent()),
            body: body?.content,
            saving: { files: isFile ? filesFor(files) : files, isFile, name: input.filename },
            isSecret,
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

function headersOf(
  { headers = {}, key }: HttpInput,
  body: HttpBody | undefined,
  { runId, originalRunId, nodeId, attempt }: ports.NodeStep,
  traceparent: string | undefined,
): Record<string, string> {
  return {
    accept: "*/*",
    "accept-encoding": "identity",
    "user-agent": "portico",
    // A definition may name another trace.
    ...(traceparent !== undefined && { traceparent }),
    ...(body && { "content-type": body.type }),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])),
    ...(key !== false && {
      "idempotency-key": keyOf([originalRunId ?? runId, nodeId, ...(key === "node" ? [] : [String(attempt)])]),
    }),
  };
}

function keyOf(parts: readonly string[]): string {
  return parts.map(encodeURIComponent).join(":");
}

function isWithin(expected: number | string, status: number): boolean {
  const [from, to = from] = String(expected).split("-").map(Number);
  return status >= from! && status <= to!;
}
