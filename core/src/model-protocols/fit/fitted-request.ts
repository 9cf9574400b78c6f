import { isRecord } from "../../kit/json-object.ts";

/** A JSON object that was not checked. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** A request as a provider accepts it. */
export interface FittedRequest {
  /** Shares all values that did not change. */
  readonly body: JsonRecord;
  /** The names of tools that were replaced: the name that is sent, and the name that the caller uses. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** Fields that were left out, and content that a note replaces, by their names in the provider's protocol. */
  readonly dropped: readonly string[];
  /** Stop sequences that the provider does not take. The reader of the answer ends it there. */
  readonly stopSequences?: readonly string[];
}

/** A request without what its provider refused. */
export interface LighterRequest {
  readonly body: JsonRecord;
  /** What was left out, as the header `x-portico-dropped` names it. */
  readonly dropped: readonly string[];
  /** Stop sequences that the provider does not take. The reader of the answer ends it there. */
  readonly stopSequences?: readonly string[];
}

/** Stands for a message without content, which vendors refuse. */
export const EMPTY_PLACEHOLDER = "(empty message)";
/** Stands for the result of a tool that gave none, which vendors refuse. */
export const NO_OUTPUT = "(no output)";

/** The object with these values; itself if it has them. */
export function changed(object: JsonRecord, values: JsonRecord): JsonRecord {
  return Object.entries(values).every(([key, value]) => object[key] === value) ? object : { ...object, ...values };
}

/**
 * The tools, each name once. Vendors refuse a request with two tools of one name (danny-avila/LibreChat#13162): the first one stays, which a
 * caller finds first.
 */
export function distinctTools(
  tools: readonly unknown[],
  nameOf: (tool: unknown) => unknown,
  dropped: Set<string>,
): readonly unknown[] {
  const names = new Set<unknown>();
  return tools.filter((tool) => {
    const name = nameOf(tool);
    const isFirst = name === undefined || !names.has(name);
    names.add(name);
    if (!isFirst) dropped.add("tools");
    return isFirst;
  });
}

/** Follows the beginning of an answer, for a model that does not go on with it by itself. */
const GO_ON = "(continue)";

/**
 * Newer models of Messages refuse it: "This model does not support assistant message prefill" (platform.claude.com/docs, What's new in Claude
 * 4.6). Vendors of Chat Completions, too: "Expected last role User or Tool" (crewAIInc/crewAI#2194, huggingface/smolagents#757).
 */
export function withoutPrefill(messages: readonly unknown[]): readonly unknown[] {
  const last = messages.at(-1);
  const isPrefill = isRecord(last) && last["role"] === "assistant" && last["tool_calls"] === undefined;
  return isPrefill ? [...messages, { role: "user", content: GO_ON }] : messages;
}

/** What turns thinking off, by the dialect's `thinkingSwitch`. */
export const THINKING_OFF = { thinking: { type: "disabled" }, enable_thinking: false } as const;
