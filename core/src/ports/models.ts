import type { Readable } from "node:stream";
import { defineManyPort, type ManyPort } from "../grammar/port.ts";

/** The two wire formats that callers and providers speak (specification 4.1). */
export type ModelProtocol = "messages" | "chat-completions";

/** One configured provider. It uses one protocol and passes bytes through unchanged. It never converts protocols. */
export interface ModelProvider {
  /** The provider configuration's id; safe tokens are bound to it. */
  readonly id: string;
  /** The value of `owned_by` (specification 2.2). */
  readonly type: string;
  readonly protocol: ModelProtocol;
  /** The parts of Chat Completions that it supports. Default: all, as {@link PUBLISHED_CHAT_DIALECT}. Ignored for `messages`. */
  readonly dialect?: ChatDialect;
  /** Names of its models, without duplicates. May call the upstream. Throws as `send` does. */
  listModels(signal?: AbortSignal): Promise<readonly string[]>;
  /**
   * Maximum tokens of a request to a model, as the provider's own list says; undefined if the list does not say it. Absent for a
   * provider without such a list. May call the upstream. Throws as `send` does.
   */
  contextTokens?(model: string, signal?: AbortSignal): Promise<number | undefined>;
  /**
   * One model call. Resolves with the answer's head as soon as it has arrived, with any status; the body streams. Adds the
   * provider's own credential and headers. A stream body is always read to its end or destroyed. When `signal` aborts, the
   * upstream call is aborted at once, and everything that is still open fails with the signal's reason. Destroying the answer's
   * body also aborts the call. Throws ModelUnreachable (no connection, or it broke), ModelTimeout or the signal's reason; the
   * answer's body can fail with any of them.
   */
  send(call: ModelCall, signal: AbortSignal): Promise<ModelAnswer>;
  /** Returns `text` without this provider's credential and address. For every upstream text that is shown to a caller. */
  redact(text: string): string;
}

/**
 * The parts of the Chat Completions protocol that a provider supports (open points 12). Used for requests that this service
 * writes. A request that a caller wrote in the same protocol passes unchanged.
 */
export interface ChatDialect {
  /** The field for the maximum length of the answer, in tokens. */
  readonly maxTokens: "max_completion_tokens" | "max_tokens";
  /** `none`: no `reasoning_effort` is sent. */
  readonly reasoning: "effort" | "none";
  /** Whether it supports `stream_options`, which request the usage of a stream. */
  readonly streamOptions: boolean;
  /** Whether it accepts reasoning of earlier turns: `reasoning_content` and `reasoning_details` of an assistant's message. */
  readonly reasoningContent: boolean;
  /** `required`: an assistant's message with tool calls must have `reasoning_content`, which may be empty. */
  readonly reasoningOfCalls: "optional" | "required";
  /** `strict`: one system message at the head, and then messages of user and assistant that alternate. */
  readonly turns: "free" | "strict";
  /** Whether a user's message may follow a tool's. */
  readonly userAfterTool: boolean;
  /** The form of the ids of tool calls. `nine`: nine letters and digits. */
  readonly toolIds: "any" | "nine";
  /** Whether the first tool call of an assistant's message must have Google's thought signature, in `extra_content`. */
  readonly thoughtSignatures: boolean;
  /** Whether it supports `user`, which names the end user. */
  readonly user: boolean;
}

/** All parts, with the names in the publisher's documentation. */
export const PUBLISHED_CHAT_DIALECT: ChatDialect = {
  maxTokens: "max_completion_tokens",
  reasoning: "effort",
  streamOptions: true,
  reasoningContent: true,
  reasoningOfCalls: "optional",
  turns: "free",
  userAfterTool: true,
  toolIds: "any",
  thoughtSignatures: false,
  user: true,
};

/** Maximum tool calls of one answer. An answer with more is broken: none of its calls runs. */
export const ANSWER_TOOL_CALLS = 1_000;

/** One call of a model, in the provider's protocol. */
export interface ModelCall {
  /** End-to-end request headers by lowercase name, without credentials and cookies. */
  readonly headers: Readonly<Record<string, string>>;
  /** The query of the caller's URL, `""` or with its leading `?`. */
  readonly query: string;
  /** The request body in the provider's protocol. */
  readonly body: Uint8Array | Readable;
  /** Bytes of `body`, if it is a stream of known length. */
  readonly length?: number;
}

/** The answer of the provider, with any status. */
export interface ModelAnswer {
  readonly status: number;
  /** By lowercase name. May still contain hop-by-hop headers. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Readable;
  /**
   * The bytes of `body`, if all of them arrived together with the head. A reader that uses them need not read `body`. Default: unknown, and
   * `body` must be read.
   */
  readonly whole?: Buffer;
  /**
   * Fields of the request that the provider left out because leaving them out keeps the meaning, by their names in the provider's protocol. The
   * model proxy tells them in `x-portico-dropped`. Names have the characters `[a-zA-Z0-9_.$-]`.
   */
  readonly dropped?: readonly string[];
}

/** Thrown when the provider is unreachable or the connection broke. Its message contains neither address nor credential. */
export class ModelUnreachable extends Error {
  override readonly name = "ModelUnreachable";
}

/** Thrown when the provider did not connect, answer, or continue its answer within the configured time. */
export class ModelTimeout extends Error {
  override readonly name = "ModelTimeout";
}

/** The port of model providers. */
export const models: ManyPort<ModelProvider> = defineManyPort<ModelProvider>("models");
