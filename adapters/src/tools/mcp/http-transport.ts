import type { ports } from "@portico/core";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { boundedFetch } from "./bounded-fetch.ts";
import type { McpPlace } from "./server-options.ts";

/** How long a server has to take note that its session is over. */
const GOODBYE_MS = 1_000;

/** Marks the answer that stands in for one that a server began and broke off. */
export const BROKEN_OFF: Readonly<Record<string, unknown>> = Object.freeze({ brokenOff: true });

type Send = StreamableHTTPClientTransport["send"];

/** A server at an address, over streamable HTTP. */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #clock: ports.Clock;
  #ending: Promise<void> | undefined;

  constructor({ url, headers }: Extract<McpPlace, { kind: "address" }>, clock: ports.Clock) {
    super(url, { requestInit: { headers: { ...headers } }, fetch: boundedFetch });
    this.#clock = clock;
  }

  /** A handshake that was overtaken by the end sends nothing any more. */
  override async start(): Promise<void> {
    if (this.#ending) throw new Error("The connection was closed before it began");
    await super.start();
  }

  /** The library tells nobody when the stream of an answer ends without one; the caller would wait in vain. */
  override send(message: Parameters<Send>[0], options?: Parameters<Send>[1]): Promise<void> {
    if (Array.isArray(message) || !("id" in message) || !("method" in message)) return super.send(message, options);
    const { id } = message;
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      // One more answer after the true one is dropped.
      this.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32_000, message: "The answer broke off", data: BROKEN_OFF } });
    };
    return super.send(message, { ...options, onRequestStreamEnd });
  }

  /** Resolves when nothing is open any more. */
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
  }
}
