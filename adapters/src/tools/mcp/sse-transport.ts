import { type FetchLike, SdkErrorCode, SdkHttpError, SseError, SSEClientTransport } from "@modelcontextprotocol/client";
import { boundedFetch } from "./bounded-fetch.ts";
import { createPatientFetch, type PatientFetch } from "../../outbound/patient-fetch.ts";
import { sessionAccess, type TokenSource } from "./oauth/session-access.ts";
import type { McpPlace } from "./server-options.ts";

/**
 * A server at a URL, over HTTP with server-sent events: the transport of the protocol's revision 2024-11-05. One stream carries
 * every message of the server. The session ends with the stream, so a stream that ends is never opened again.
 */
// oxlint-disable-next-line typescript/no-deprecated -- for the servers that support only this transport
export class SseTransport extends SSEClientTransport {
  readonly #requests: PatientFetch;
  readonly #failure: { cause?: unknown };
  #ending: Promise<void> | undefined;

  constructor({ url, headers, outbound }: Extract<McpPlace, { kind: "address" }>, tokens: TokenSource | undefined) {
    const requests = createPatientFetch(outbound);
    const failure: { cause?: unknown } = {};
    const ask = boundedFetch(withStatus(requests.fetch, failure, tokens !== undefined));
    const access = tokens && sessionAccess(tokens, ask);
    super(url, {
      requestInit: { headers: { ...headers } },
      fetch: access?.ask ?? ask,
      ...(access && { authProvider: access.authProvider }),
    });
    this.#requests = requests;
    this.#failure = failure;
  }

  /** A handshake that starts after the closing must not send anything. */
  override async start(): Promise<void> {
    if (this.#ending) throw new Error("The connection was closed before it began");
    const report = this.onerror;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has no events
    this.onerror = (error) => {
      report?.(error);
      // The library would open another stream, and with it a session without a handshake.
      if (error instanceof SseError) void this.close();
    };
    try {
      await super.start();
    } catch (error) {
      throw error instanceof SseError ? this.#explain(error) : error;
    }
  }

  /** Resolves when everything is closed. */
  override close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    await super.close();
    await this.#requests.close();
  }

  /** The library's error quotes the text of the real one, and has no cause. */
  #explain({ code: status }: SseError): unknown {
    if (status === undefined) return this.#failure.cause ?? new Error("The server ended its stream");
    if (status === 200)
      return Object.assign(new Error("The server's answer is not a stream of events"), { code: "NO_EVENT_STREAM" });
    return refusal(status);
  }
}

/**
 * Keeps the error of a stream that cannot be opened. A refused message throws its status: the library would throw the server's text. With
 * `renews`, the library sends a message again after 401, with another token.
 */
const withStatus =
  (ask: FetchLike, failure: { cause?: unknown }, renews: boolean): FetchLike =>
  async (url, init) => {
    const isMessage = init?.method === "POST";
    const response = await ask(url, init).catch((error: unknown) => {
      if (!isMessage) failure.cause = error;
      throw error;
    });
    if (!isMessage || response.ok || (renews && response.status === 401)) return response;
    await response.body?.cancel().catch(() => undefined);
    throw refusal(response.status);
  };

function refusal(status: number): SdkHttpError {
  return new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, "The server refused the request", { status, statusText: "" });
}
