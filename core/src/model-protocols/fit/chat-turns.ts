import { isRecord } from "../../kit/json-object.ts";
import type { JsonRecord } from "./fitted-request.ts";

/** Stands for the assistant where a vendor requires a turn of it. */
const ASSISTANT_PLACEHOLDER = "(continue)";
/** Stands for the user's first message. */
const USER_PLACEHOLDER = "(start of conversation)";

/**
 * Templates of many models accept one system message, at the head, and turns that alternate: "System message must be at the beginning"
 * (ollama/ollama#17774, BerriAI/litellm#39852). Later instructions become marked text of the user, in their place. Neighbours of one role
 * become one message. The first message after the instructions is the user's: "No user query found in messages" (vllm-project/vllm#36432), "function
 * call turn comes immediately after a user turn" (google-gemini/gemini-cli#11814).
 */
export function strictTurns(messages: readonly unknown[]): readonly unknown[] {
  const groups: unknown[][] = [];
  let isAtHead = true;
  for (const each of messages) {
    const isSystem = isRecord(each) && each["role"] === "system";
    isAtHead &&= isSystem;
    const message = isSystem && !isAtHead ? instructionOf(each) : each;
    const last = groups.at(-1);
    if (last && belongTogether(last.at(-1), message)) last.push(message);
    else groups.push([message]);
  }
  const turns = groups.map((group) => (group.length === 1 ? group[0] : joined(group as JsonRecord[])));
  const first = turns.findIndex((turn) => !(isRecord(turn) && turn["role"] === "system"));
  const opening = first === -1 ? undefined : turns[first];
  if (isRecord(opening) && opening["role"] === "user") return turns;
  const at = first === -1 ? turns.length : first;
  return [...turns.slice(0, at), { role: "user", content: USER_PLACEHOLDER }, ...turns.slice(at)];
}

function instructionOf(message: JsonRecord): JsonRecord {
  return { role: "user", content: `<system>\n${textOf(message["content"])}\n</system>` };
}

function belongTogether(first: unknown, second: unknown): boolean {
  if (!isRecord(first) || !isRecord(second) || first["role"] !== second["role"]) return false;
  // A call must be followed by its results.
  return first["role"] === "assistant"
    ? first["tool_calls"] === undefined
    : first["role"] === "user" || first["role"] === "system";
}

function joined(messages: readonly JsonRecord[]): JsonRecord {
  const contents = messages.map((message) => message["content"]);
  const together: JsonRecord = Object.assign({}, ...messages);
  const isText = contents.every((each) => typeof each === "string" || each === null || each === undefined);
  const content = isText ? contents.filter(Boolean).join("\n\n") : contents.flatMap(partsOf);
  return { ...together, content: content === "" && together["tool_calls"] !== undefined ? null : content };
}

/** Mistral refuses a user's message after a tool's: "Unexpected role 'user' after role 'tool'" (zed-industries/zed#37021, block/goose#5998). */
export function withAssistantBefore(message: unknown, before: unknown): readonly unknown[] {
  const isRefused = isRecord(message) && isRecord(before) && message["role"] === "user" && before["role"] === "tool";
  return isRefused ? [{ role: "assistant", content: ASSISTANT_PLACEHOLDER }, message] : [message];
}

function partsOf(content: unknown): readonly unknown[] {
  if (Array.isArray(content)) return content;
  return typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : [];
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return partsOf(content)
    .flatMap((part) => (isRecord(part) && typeof part["text"] === "string" ? [part["text"]] : []))
    .join("\n\n");
}
