import type { Live, ports, Secret } from "@portico/core";

/** One provider behind HTTP, as a preset configures it (open points 1, `providers`). */
export interface HttpProviderOptions {
  /** Provider configuration ID. Safe tokens are bound to it. */
  readonly id: string;
  /** The value of `owned_by`. */
  readonly type: string;
  /** Everything before `/messages`, `/chat/completions` and `/models`, for example `https://api.example/v1`. */
  readonly baseUrl: string;
  readonly credential?: Secret | undefined;
  /** Model names, or `"discover"` to read the upstream's own list. */
  readonly models: readonly string[] | "discover";
  /** Sent with every call. They replace the caller's headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The next credential and headers, while the app is open: for the calls that begin later. Calls in progress finish with those
   * that they began with. Undefined keeps the present ones. Default: they never change.
   */
  readonly rotation?: Live<Pick<HttpProviderOptions, "credential" | "headers"> | undefined> | undefined;
  readonly timeouts?: Partial<ProviderTimeouts> | undefined;
  /**
   * Sends the calls, in place of connections of undici: for runtimes without sockets, and for hosts with a `fetch` of their own. Then
   * `connectMs` has no effect, and encoded answers arrive decoded.
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The supported parts of Chat Completions, if they differ from those of the known vendor. Ignored for Messages. */
  readonly dialect?: { readonly [Key in keyof ports.ChatDialect]?: ports.ChatDialect[Key] | undefined } | undefined;
}

/** All in milliseconds. */
export interface ProviderTimeouts {
  readonly connectMs: number;
  /** From the last byte of the request to the answer's head. */
  readonly headersMs: number;
  /** Idle timeout within an answer. */
  readonly idleMs: number;
}

export const DEFAULT_TIMEOUTS: ProviderTimeouts = { connectMs: 10_000, headersMs: 600_000, idleMs: 300_000 };

/** The differences between the two protocols in requests to an upstream. */
export interface UpstreamProtocol {
  readonly protocol: ports.ModelProtocol;
  /** Appended to `baseUrl`. */
  readonly callPath: string;
  credentialHeader(credential: string): Readonly<Record<string, string>>;
  /** Required headers of a call. The caller's own take precedence. */
  readonly defaults: Readonly<Record<string, string>>;
  /** The dialect of the provider with these options, if the protocol has dialects. */
  dialect?(options: HttpProviderOptions): ports.ChatDialect;
}
