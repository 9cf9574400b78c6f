import type { ports } from "@portico/core";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { boundedFetch } from "./bounded-fetch.ts";
import { createPatientFetch, type PatientFetch } from "../../outbound/patient-fetch.ts";
import { sessionAccess, type TokenSource } from "./oauth/session-access.ts";
import type { McpPlace } from "./server-options.ts";

/** Timeout for telling a server that its session has ended. */
const GOODBYE_MS = 1_000;

/** Marks the replacement for an answer that a server began and ended early. */
export const ENDED_EARLY: Readonly<Record<string, unknown>> = Object.freeze({ endedEarly: true });

type Send = StreamableHTTPClientTransport["send"];

/** A server at a URL, over streamable HTTP. */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #clock: ports.Clock;
  readonly #requests: PatientFetch;
  #ending: Promise<void> | undefined;

  constructor(
    { url, headers, outbound }: Extract<McpPlace, { kind: "address" }>,
    clock: ports.Clock,
    tokens: TokenSource | undefined,
  ) {
    const requests = createPatientFetch(outbound);
    const ask = boundedFetch(requests.fetch);
    const access = tokens && sessionAccess(tokens, ask);
    super(url, {
      requestInit: { headers: { ...headers } },
      fetch: access?.ask ?? ask,
      ...(access && { authProvider: access.authProvider }),
    });
    this.#requests = requests;
    this.#clock = clock;
  }

  /** A handshake that starts after the closing must not send anything. */
  override async start(): Promise<void> {
    if (this.#ending) throw new Error("The connection was closed before it began");
    await super.start();
  }

  /** The library reports nothing when the stream of an answer ends without an answer. The caller would wait forever. */
  override send(message: Parameters<Send>[0], options?: Parameters<Send>[1]): Promise<void> {
    if (Array.isArray(message) || !("id" in message) || !("method" in message)) return super.send(message, options);
    const { id } = message;
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      // An additional answer after the real one is dropped.
      this.onmessage?.({
        jsonrpc: "2.0",
        id,
        error: { code: -32_000, message: "The server ended its answer early", data: ENDED_EARLY },
      });
    };
    return super.send(message, { ...options, onRequestStreamEnd });
  }

  /** Resolves when everything is closed. */
  override close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.sessionId !== undefined) {
      const waiting = new AbortController();
      const late = this.#clock.sleep(GOODBYE_MS, waiting.signal).catch(() => undefined);
      await Promise.race([this.terminateSession().catch(() => undefined), late]);
      waiting.abort();
    }
    await super.close();
    await this.#requests.close();
  }
}
