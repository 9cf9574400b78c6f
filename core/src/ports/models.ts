import type { Readable } from "node:stream";
import { defineManyPort, type ManyPort } from "../port.ts";

/** The two wire formats that callers and providers speak (specification 4.1). */
export type ModelProtocol = "messages" | "chat-completions";

/**
 * One configured provider: it speaks one protocol and hands bytes through untouched. Converting protocols is not its business.
 */
export interface ModelProvider {
  /** The provider configuration's id; safe tokens are bound to it. */
  readonly id: string;
  /** What `owned_by` reports (specification 2.2). */
  readonly type: string;
  readonly protocol: ModelProtocol;
  /** Names of the models it serves, each once. May ask the upstream. Throws as `send` does. */
  listModels(signal?: AbortSignal): Promise<readonly string[]>;
  /**
   * One model call. Resolves with the answer's head as soon as it is there, whatever its status; the body streams. Adds the
   * provider's own credential and headers. A stream body is read to its end or destroyed, whatever happens. When `signal` aborts,
   * the upstream call is aborted at once and whatever is still open fails with the signal's reason; destroying the answer's body
   * aborts the call, too. Throws ModelUnreachable (no connection, or it broke), ModelTimeout or the signal's reason; the answer's
   * body can fail with any of them.
   */
  send(call: ModelCall, signal: AbortSignal): Promise<ModelAnswer>;
  /** `text` without this provider's credential and address: for whatever of an upstream's words is shown to a caller. */
  redact(text: string): string;
}

export interface ModelCall {
  /** End-to-end request headers by lowercase name, without credentials and cookies. */
  readonly headers: Readonly<Record<string, string>>;
  /** The query of the caller's URL, `""` or with its leading `?`. */
  readonly query: string;
  /** The request body in the provider's protocol. */
  readonly body: Uint8Array | Readable;
  /** Bytes of `body`, where it is a stream and its length is known. */
  readonly length?: number;
}

export interface ModelAnswer {
  readonly status: number;
  /** By lowercase name; hop-by-hop headers may still be there. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Readable;
}

/** Thrown when the provider could not be reached or the connection broke. Its message holds neither address nor credential. */
export class ModelUnreachable extends Error {
  override readonly name = "ModelUnreachable";
}

/** Thrown when the provider did not connect, answer, or go on answering in the time its configuration allows. */
export class ModelTimeout extends Error {
  override readonly name = "ModelTimeout";
}

export const models: ManyPort<ModelProvider> = defineManyPort<ModelProvider>("models");
