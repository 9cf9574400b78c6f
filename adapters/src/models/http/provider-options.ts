import type { ports, Secret } from "@portico/core";

/** One provider behind HTTP, as a preset configures it (open points 1, `providers`). */
export interface HttpProviderOptions {
  /** Provider configuration id; safe tokens are bound to it. */
  readonly id: string;
  /** What `owned_by` reports. */
  readonly type: string;
  /** Everything before `/messages`, `/chat/completions` and `/models`, for example `https://api.example/v1`. */
  readonly baseUrl: string;
  readonly credential?: Secret | undefined;
  /** Model names, or `"discover"` to read the upstream's own list. */
  readonly models: readonly string[] | "discover";
  /** Sent with every call, stronger than the caller's. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeouts?: Partial<ProviderTimeouts> | undefined;
}

/** All in milliseconds. */
export interface ProviderTimeouts {
  readonly connectMs: number;
  /** From the last byte of the request to the answer's head. */
  readonly headersMs: number;
  /** Silence inside an answer. */
  readonly idleMs: number;
}

export const DEFAULT_TIMEOUTS: ProviderTimeouts = { connectMs: 10_000, headersMs: 600_000, idleMs: 300_000 };

/** What differs between the two protocols on the way to an upstream. */
export interface UpstreamDialect {
  readonly protocol: ports.ModelProtocol;
  /** Appended to `baseUrl`. */
  readonly callPath: string;
  credentialHeader(credential: string): Readonly<Record<string, string>>;
  /** Headers a call must have; the caller's own come first. */
  readonly defaults: Readonly<Record<string, string>>;
}
