import type { Readable } from "node:stream";
import type { ports } from "@portico/core";

export interface UpstreamRequest {
  readonly method: "GET" | "POST";
  /** Path and query, from the origin. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | Readable | undefined;
}

/** Calls to one provider, with only this provider's timeouts. */
export interface Upstream {
  request(request: UpstreamRequest, signal: AbortSignal | undefined): Promise<ports.ModelAnswer>;
  close(): Promise<void>;
}
