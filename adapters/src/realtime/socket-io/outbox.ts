import type { Socket as Connection } from "engine.io";
import type { SocketLimits } from "../socket-limits.ts";

/**
 * Data that waits to leave on one Engine.IO connection. Engine.IO gives its whole buffer to the transport at once ("flush") and
 * fills the next buffer until the transport is "ready" again: with a WebSocket when the bytes are written, with polling at the
 * client's next request.
 */
export class Outbox {
  readonly #connection: Connection;
  #events = 0;
  #bytes = 0;
  /** Waiters for the data in the buffer. */
  #buffered: PromiseWithResolvers<boolean> | undefined;
  /** Waiters for the data in the transport. */
  #leaving: PromiseWithResolvers<boolean> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.on("packetCreate", ({ data }: { readonly data?: string | Buffer }) => {
      this.#events++;
      if (data !== undefined) this.#bytes += Buffer.byteLength(data);
    });
    connection.on("flush", () => this.#flushed());
    // A client changes its transport only after it has read everything from the old one.
    if (connection.transport.name === "polling") connection.once("upgrade", () => this.#left(this.#leaving));
  }

  /** Whether the backlog exceeds the client's limits. */
  exceeds({ events, bytes }: SocketLimits["backlog"]): boolean {
    return this.#events > events || this.#bytes > bytes;
  }

  /** True when everything sent so far has left. False if `end` comes first. */
  drained(): Promise<boolean> {
    if (this.#events > 0) return (this.#buffered ??= Promise.withResolvers()).promise;
    if (this.#connection.transport.writable) return Promise.resolve(true);
    this.#leaving ??= this.#untilReady(Promise.withResolvers());
    return this.#leaving.promise;
  }

  /** No more data leaves. */
  end(): void {
    this.#buffered?.resolve(false);
    this.#leaving?.resolve(false);
  }

  #flushed(): void {
    this.#leaving = this.#buffered && this.#untilReady(this.#buffered);
    this.#buffered = undefined;
    this.#events = this.#bytes = 0;
  }

  #untilReady(waiting: PromiseWithResolvers<boolean>): PromiseWithResolvers<boolean> {
    this.#connection.transport.once("ready", () => this.#left(waiting));
    return waiting;
  }

  #left(waiting: PromiseWithResolvers<boolean> | undefined): void {
    waiting?.resolve(true);
    if (this.#leaving === waiting) this.#leaving = undefined;
  }
}
