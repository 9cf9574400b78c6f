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
  /**
   * The name of the protocol of its upstream, if it converts. Signatures and sealed thinking of one upstream protocol are not sent to another,
   * for a provider's configuration can change. Default: `protocol`.
   */
  readonly upstreamProtocol?: string;
  /**
   * Whether its models are agents of this instance. Agents and nodes of workflows do not use it, because agents would call themselves. The model
   * proxy does not count its calls, because the turns of the agents count theirs. Default: false.
   */
  readonly servesAgents?: boolean;
  /**
   * What it knows of a model, without waiting: callers ask with each call. Code that writes a request for the model follows it. Default:
   * nothing is known, and the model accepts its protocol as published.
   */
  facts?(model: string): ModelFacts;
  /** Whether the facts of a model can have `upstream` or `parameters`. Then requests of callers are read whole before they are sent. */
  readonly setsParameters?: boolean;
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
 * What a provider knows of one of its models. Every member is optional: what is absent is unknown, or as the protocol publishes it. It is
 * data: it can be sent to another thread.
 */
export interface ModelFacts {
  /** The name that is sent in place of the model's name. */
  readonly upstream?: string;
  /** For a provider of Chat Completions. Default: {@link PUBLISHED_CHAT_DIALECT}. */
  readonly chat?: ChatDialect;
  /** For a provider of Messages. Default: {@link PUBLISHED_MESSAGES_DIALECT}. */
  readonly messages?: MessagesDialect;
  /** Whether the model reads images and files. `false`: notes are sent in place of them. Unknown: they are sent. */
  readonly images?: boolean;
  readonly parameters?: ModelParameters;
}

/** Members of requests in the provider's protocol, which are set for each call of a model. */
export interface ModelParameters {
  /** Set if a request does not have them. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Set in each request, in place of the caller's. Null: never sent. */
  readonly fixed?: Readonly<Record<string, unknown>>;
}

/** The parts of the Messages protocol that a model supports. Used as {@link ChatDialect} is. */
export interface MessagesDialect {
  /** `one`: not both of `temperature` and `top_p`. `none`: neither of them, and no `top_k`. */
  readonly sampling: "both" | "one" | "none";
  /** `adaptive`: thinking by effort. `budget`: thinking by a number of tokens. `none`: no thinking is sent. */
  readonly thinking: "adaptive" | "budget" | "none";
  /** Whether a request may end with the beginning of the answer, as a message of the assistant. */
  readonly prefill: boolean;
  /** Maximum tokens of an answer. Undefined: unknown. */
  readonly maxTokens?: number;
}

/** All parts of Messages, with the names in the publisher's documentation of its current models. */
export const PUBLISHED_MESSAGES_DIALECT: MessagesDialect = { sampling: "both", thinking: "adaptive", prefill: true };

/**
 * The parts of the Chat Completions protocol that a model supports (open points 12). Used for requests that this service
 * writes. A request that a caller wrote in the same protocol passes unchanged.
 */
export interface ChatDialect {
  /** The field for the maximum length of the answer, in tokens. */
  readonly maxTokens: "max_completion_tokens" | "max_tokens";
  /** `none`: no `reasoning_effort` is sent. */
  readonly reasoning: "effort" | "none";
  /** A request with tools: `any` has the asked effort, `absent` has no `reasoning_effort`, `none` has the effort `none`. */
  readonly effortWithTools: "any" | "absent" | "none";
  /** Whether it supports `temperature` and `top_p`. */
  readonly sampling: boolean;
  /** Whether it accepts `cache_control` on parts of the content, and needs it to keep a prompt in its cache. */
  readonly cacheMarks: boolean;
  /** Whether it supports `stream_options`, which request the usage of a stream. */
  readonly streamOptions: boolean;
  /** Whether it accepts reasoning of earlier turns: `reasoning_content` and `reasoning_details` of an assistant's message. */
  readonly reasoningContent: boolean;
  /** `required`: an assistant's message with tool calls must have `reasoning_content`, which may be empty. */
  readonly reasoningOfCalls: "optional" | "required";
  /** `strict`: one system message at the head, and then messages of user and assistant that alternate, the user's first. */
  readonly turns: "free" | "strict";
  /** The content of an assistant's message that only calls tools: `null`, or an empty text. */
  readonly contentOfCalls: "null" | "empty";
  /** Whether a user's message may follow a tool's. */
  readonly userAfterTool: boolean;
  /** The form of the ids of tool calls. `nine`: nine letters and digits. */
  readonly toolIds: "any" | "nine";
  /** Whether the first tool call of an assistant's message must have Google's thought signature, in `extra_content`. */
  readonly thoughtSignatures: boolean;
  /** Whether it supports `user`, which names the end user. */
  readonly user: boolean;
  /** Whether it supports `stop`. If not, the answer is ended at the first stop sequence when it is read. */
  readonly stop: boolean;
  /** `words`: a forced tool has no name. The request has this tool alone then, and requires a call. */
  readonly toolChoice: "any" | "words";
  /** The form of tools' schemas. `typed`: each branch of a choice has its type. `google`: the subset of OpenAPI that Gemini takes. */
  readonly toolSchemas: "any" | "typed" | "google";
  /** Whether it takes a JSON Schema of the answer. If not, the instructions describe it. */
  readonly answerSchema: boolean;
  /** Whether a request may end with the beginning of the answer, as a message of the assistant. */
  readonly prefill: boolean;
  /** The member that turns thinking off, for a request that asks for it, and for a forced tool, which such a model does not call while it thinks. */
  readonly thinkingSwitch: "none" | "thinking" | "enable_thinking";
}

/** All parts, with the names in the publisher's documentation. */
export const PUBLISHED_CHAT_DIALECT: ChatDialect = {
  maxTokens: "max_completion_tokens",
  reasoning: "effort",
  effortWithTools: "any",
  sampling: true,
  cacheMarks: false,
  streamOptions: true,
  reasoningContent: true,
  reasoningOfCalls: "optional",
  turns: "free",
  contentOfCalls: "null",
  userAfterTool: true,
  toolIds: "any",
  thoughtSignatures: false,
  user: true,
  stop: true,
  toolChoice: "any",
  toolSchemas: "any",
  answerSchema: true,
  prefill: true,
  thinkingSwitch: "none",
};

/** Maximum tool calls of one answer. An answer with more is broken: none of its calls runs. */
export const ANSWER_TOOL_CALLS = 1_000;

/** One call of a model, in the provider's protocol. */
export interface ModelCall {
  /** End-to-end request headers by lowercase name, without credentials and cookies. */
  readonly headers: Readonly<Record<string, string>>;
  /** The query of the caller's URL, `""` or with its leading `?`. */
  readonly query: string;
  /** The model that the body names, if the caller knows it. A provider may set headers by it. */
  readonly model?: string;
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
