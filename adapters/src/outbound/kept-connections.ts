import type { Client, Dispatcher, Pool } from "undici/index.js";

/** Without effects on the server (RFC 9110, 9.2.1). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);
/** The connection ended, by its server or on the way. */
const CLOSED = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/**
 * The `factory` of a pool whose connections are kept. A server may close such a connection at the moment when a request is sent. A safe request
 * without a body that then got no byte of an answer is sent once more, on a new connection. Given undici's class, because undici is loaded late.
 */
export function keptConnections(Connection: typeof Client): NonNullable<Pool.Options["factory"]> {
  class KeptConnection extends Connection {
    readonly #origin: URL;
    readonly #options: Client.Options;
    readonly #fresh = new Set<Client>();
    /** Whether this connection has brought an answer before. */
    #isUsed = false;

    constructor(origin: URL, options: Client.Options) {
      super(origin, options);
      this.#origin = origin;
      this.#options = options;
      this.on("connect", () => void (this.#isUsed = false));
    }

    override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
      const { method, body } = options;
      const canRepeat = SAFE.has(method) && (body === null || body === undefined);
      return super.dispatch(
        options,
        noted(handler, {
          answered: () => void (this.#isUsed = true),
          isRepeated: (code) => {
            if (!canRepeat || !this.#isUsed || !CLOSED.has(code)) return false;
            this.#sendFresh(options, handler);
            return true;
          },
        }),
      );
    }

    #sendFresh(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
      const fresh = new Connection(this.#origin, { ...this.#options, pipelining: 0 });
      this.#fresh.add(fresh);
      fresh.dispatch(options, handler);
      // It waits for the answer's end.
      void fresh.close().finally(() => this.#fresh.delete(fresh));
    }

    override destroy(...given: unknown[]): Promise<void> {
      for (const fresh of this.#fresh) void fresh.destroy();
      return super.destroy(...(given as []));
    }
  }
  return (origin, options) => new KeptConnection(origin, options);
}

/** What is done with the events of a request before its handler is told of them. */
interface Noted {
  /** An answer begins. */
  answered?(): void;
  /** Asked at an error before the first byte of an answer: if true, the handler is not told of it. */
  isRepeated?(code: string): boolean;
  /** The error that the handler is told of. */
  explained?(error: Error): Error;
}

/** The handler of one request. */
export function noted(
  handler: Dispatcher.DispatchHandler,
  { answered, isRepeated, explained }: Noted,
): Dispatcher.DispatchHandler {
  let hasBegun = false;
  return {
    onRequestStart: (...given) => handler.onRequestStart?.(...given),
    onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
    onRequestSent: () => handler.onRequestSent?.(),
    onBodySent: (chunk) => handler.onBodySent?.(chunk),
    onResponseStarted() {
      hasBegun = true;
      handler.onResponseStarted?.();
    },
    onResponseStart(...given) {
      answered?.();
      handler.onResponseStart?.(...given);
    },
    onResponseData: (...given) => handler.onResponseData?.(...given),
    onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
    onResponseError(controller, error) {
      const code = String((error as { readonly code?: unknown }).code);
      if (hasBegun || !isRepeated?.(code)) handler.onResponseError?.(controller, explained?.(error) ?? error);
    },
  };
}
