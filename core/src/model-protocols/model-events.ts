import type { JsonObject } from "./json.ts";

/**
 * The events of a model's answer, independent of the protocol. Readers turn an upstream answer (whole or streamed) into these events.
 * Writers turn the events into the caller's protocol. Readers keep this order: `start`, then blocks one after another or interleaved,
 * then `usage` if it was reported, then exactly one of `finish` and `error`. Writers accept any order.
 */
export type ModelEvent =
  | { readonly type: "start"; readonly model?: string | undefined; readonly usage?: Usage | undefined }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string }
  /** The complete signature, never a part. It ends the preceding thinking. Empty for thinking without a signature. */
  | { readonly type: "thinking-signature"; readonly signature: string }
  | { readonly type: "redacted-thinking"; readonly data: string }
  /**
   * `call` numbers the tool calls of one answer from 0, independent of the upstream's indexes. `id` is "" if the upstream gave no id.
   */
  | {
      readonly type: "tool-start";
      readonly call: number;
      readonly id: string;
      readonly name: string;
      /** The provider needs it back with the call. */
      readonly signature?: string;
    }
  /** A piece of the arguments' JSON text. */
  | { readonly type: "tool-arguments"; readonly call: number; readonly json: string }
  /** The arguments of this call are complete. */
  | { readonly type: "tool-end"; readonly call: number }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "finish"; readonly reason: FinishReason; readonly stopSequence?: string | undefined }
  /** The answer broke. No event follows, and writers must not write a normal end. */
  | { readonly type: "error"; readonly error: ModelError };

/** Why the model stopped, in neutral terms. */
export type FinishReason = "end" | "length" | "tool" | "stop-sequence" | "refusal" | "context-window" | "pause";

/**
 * Token counts. A field is absent if the upstream did not report it: missing usage is not zero consumption (specification 4.1).
 * `input` excludes tokens that were read from or written to a cache. So the three input counts add up to the prompt.
 */
export interface Usage {
  readonly input?: number | undefined;
  readonly cacheRead?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly output?: number | undefined;
  /** The part of `output` that was reasoning. */
  readonly reasoning?: number | undefined;
}

/** An error in neutral terms. `errors.ts` writes it in either protocol. `message` never contains a credential or an address. */
export interface ModelError {
  readonly kind: ModelErrorKind;
  readonly message: string;
  /** The provider's own machine-readable code or parameter name, if it gave one. */
  readonly code?: string | undefined;
  readonly param?: string | undefined;
  /** Messages only: a code with which a client library retries in another form. */
  readonly details?: JsonObject | undefined;
  /** Whether the answer is incomplete or cannot be read. The message is then not the provider's. */
  readonly isUnreadable?: true;
}

/** What went wrong, in the terms of both protocols. */
export type ModelErrorKind =
  | "invalid-request"
  | "authentication"
  | "permission"
  | "billing"
  | "not-found"
  | "too-large"
  | "rate-limit"
  | "timeout"
  | "overloaded"
  | "upstream"
  | "internal";

/** Reads an upstream's event stream as its bytes arrive. Never throws: faults of the stream become an `error` event. */
export interface StreamReader {
  /**
   * Takes the next bytes, which may be cut anywhere, and returns the events that they complete. After a `finish` or an `error` it returns
   * no further events.
   */
  push(chunk: Uint8Array): readonly ModelEvent[];
  /** Call it when the upstream has ended. Returns the remaining events, and an `error` if the answer is incomplete. */
  end(): readonly ModelEvent[];
}

/** Writes the caller's event stream. The text follows the protocol's grammar for any order of events. */
export interface StreamWriter {
  /** The text of these events. Empty if the events produce no text, or if the stream has ended. */
  write(events: readonly ModelEvent[]): string;
  /** A keep-alive. It may be sent between two results of `write` until the stream's end. */
  readonly keepAlive: string;
}
