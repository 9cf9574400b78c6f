import { isBlank } from "../../kit/text.ts";
import { EMPTY_PLACEHOLDER } from "../fit/fitted-request.ts";
import type { Json, JsonObject } from "../json.ts";
import { markLast, takeCacheMark, withCacheMark } from "../request/cache-mark.ts";
import {
  ConversionRefused,
  type Dropped,
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readObject,
  readOptional,
  readString,
} from "../request/fields.ts";
import { toolIdForFunctionCall, toolIdForMessages } from "../tool-ids.ts";
import { fileToMessages, imageToMessages } from "./media-parts.ts";
import { instructionInPlace, readText, systemToMessages, textBlock } from "./text-parts.ts";
import { thinkingToMessages } from "./thinking-blocks.ts";
import { functionCallToMessages, toolCallToMessages, toolResultToMessages } from "./tools-in-turns.ts";

/** Messages requires a user's turn first. */
export const START_PLACEHOLDER = "(start of conversation)";

const SPOKEN_FIELDS = new Set(["role", "content"]);
const TOOL_FIELDS = new Set(["role", "content", "tool_call_id"]);
const FUNCTION_FIELDS = new Set(["role", "content", "name"]);
const ASSISTANT_FIELDS = new Set([
  "role",
  "content",
  "refusal",
  "audio",
  "tool_calls",
  "function_call",
  "reasoning_content",
  "reasoning_details",
]);

export interface ConvertedTurns {
  readonly system?: Json;
  readonly messages: readonly JsonObject[];
}

/**
 * Converts the `messages` of a Chat Completions request to `system` and `messages` of a Messages request. Adjacent messages of one role
 * become one turn with tool results at its head. So the roles alternate, which every server of Messages accepts.
 * @throws ConversionRefused with the path of content that Messages does not support.
 */
export function turnsToMessages(value: Json | undefined, dropped: Dropped): ConvertedTurns {
  const messages = readArray(value, "messages");
  if (messages.length === 0) throw new ConversionRefused("messages", "must not be empty");
  const turns = new TurnWriter(dropped);
  for (const [index, message] of messages.entries()) turns.add(readObject(message, `messages.${index}`), `messages.${index}`);
  return turns.finish();
}

interface Turn {
  readonly role: "user" | "assistant";
  readonly results: JsonObject[];
  readonly content: JsonObject[];
}

class TurnWriter {
  readonly #dropped: Dropped;
  readonly #system: JsonObject[] = [];
  readonly #turns: Turn[] = [];
  /** Ids, by name, of legacy function calls that no function message has answered yet. */
  readonly #openCalls = new Map<string, string[]>();
  #functionCalls = 0;

  constructor(dropped: Dropped) {
    this.#dropped = dropped;
  }

  add(marked: JsonObject, path: string): void {
    const [message, mark] = takeCacheMark(marked, path, this.#dropped);
    switch (message.role) {
      case "system":
      case "developer":
        this.#addInstruction(message, mark, path);
        return;
      case "user":
        dropUnknown(message, SPOKEN_FIELDS, "messages.", this.#dropped);
        this.#say("user", userContentToMessages(message.content, `${path}.content`, this.#dropped), mark);
        return;
      case "assistant":
        this.#addAssistant(message, mark, path);
        return;
      case "tool":
        dropUnknown(message, TOOL_FIELDS, "messages.", this.#dropped);
        this.#addResult(message, mark, toolIdForMessages(readString(message.tool_call_id, `${path}.tool_call_id`)), path);
        return;
      case "function":
        dropUnknown(message, FUNCTION_FIELDS, "messages.", this.#dropped);
        this.#addResult(message, mark, this.#answeredCall(readString(message.name, `${path}.name`), path), path);
        return;
      default:
        throw new ConversionRefused(`${path}.role`, `${quoteName(message.role)} is no role of this protocol`);
    }
  }

  finish(): ConvertedTurns {
    const turns = this.#turns;
    if (turns[0]?.role !== "user") turns.unshift({ role: "user", results: [], content: [textBlock(START_PLACEHOLDER)] });
    trimPrefill(turns.at(-1));
    const messages = turns.map((turn) => ({ role: turn.role, content: contentOf(turn) }));
    const system = systemToMessages(this.#system);
    return system === undefined ? { messages } : { system, messages };
  }

  #addInstruction(message: JsonObject, mark: JsonObject | undefined, path: string): void {
    dropUnknown(message, SPOKEN_FIELDS, "messages.", this.#dropped);
    const blocks = markLast(textsToMessages(message.content, `${path}.content`, this.#dropped), mark, this.#dropped);
    if (this.#turns.length === 0) {
      for (const block of blocks) this.#system.push(block);
    } else if (blocks.length > 0) {
      this.#say("user", [instructionInPlace(blocks)]);
    }
  }

  #addAssistant(message: JsonObject, mark: JsonObject | undefined, path: string): void {
    dropUnknown(message, ASSISTANT_FIELDS, "messages.", this.#dropped);
    if (!isAbsent(message.audio)) throw new ConversionRefused(`${path}.audio`, "this provider takes no audio");
    const blocks: JsonObject[] = [
      ...thinkingToMessages(message, path, this.#dropped),
      ...assistantTextsToMessages(message, path, this.#dropped),
    ];
    const calls = readOptional(message.tool_calls, `${path}.tool_calls`, readArray) ?? [];
    for (const [index, call] of calls.entries())
      blocks.push(toolCallToMessages(call, `${path}.tool_calls.${index}`, this.#dropped));
    if (!isAbsent(message.function_call)) blocks.push(this.#functionCall(message.function_call, `${path}.function_call`));
    // An empty assistant message is left out, because Messages refuses an empty turn.
    if (blocks.length > 0) this.#say("assistant", blocks, mark);
  }

  #functionCall(value: Json, path: string): JsonObject {
    const id = toolIdForFunctionCall(this.#functionCalls++);
    const block = functionCallToMessages(value, id, path, this.#dropped);
    const name = readString(block.name, `${path}.name`);
    const open = this.#openCalls.get(name);
    if (open) open.push(id);
    else this.#openCalls.set(name, [id]);
    return block;
  }

  #answeredCall(name: string, path: string): string {
    const id = this.#openCalls.get(name)?.shift();
    if (id === undefined) throw new ConversionRefused(`${path}.name`, "answers no function call");
    return id;
  }

  #addResult(message: JsonObject, mark: JsonObject | undefined, id: string, path: string): void {
    const result = toolResultToMessages(message.content, id, `${path}.content`, this.#dropped);
    for (const marked of markLast([result], mark, this.#dropped)) this.#turn("user").results.push(marked);
  }

  /** Adds one by one, because a long list would exceed the maximum number of arguments of `push`. */
  #say(role: Turn["role"], blocks: readonly JsonObject[], mark?: JsonObject): void {
    const { content } = this.#turn(role);
    for (const block of markLast(blocks, mark, this.#dropped)) content.push(block);
  }

  /** The last turn if it has this role, otherwise a new turn. */
  #turn(role: Turn["role"]): Turn {
    const last = this.#turns.at(-1);
    if (last?.role === role) return last;
    const turn: Turn = { role, results: [], content: [] };
    this.#turns.push(turn);
    return turn;
  }
}

function contentOf({ results, content }: Turn): Json {
  const [only, second] = content;
  if (results.length > 0) return [...results, ...content];
  if (only === undefined) return EMPTY_PLACEHOLDER;
  const isPlain = second === undefined && only.type === "text" && isAbsent(only.cache_control);
  return isPlain ? readString(only.text, "messages") : content;
}

/** The model continues an assistant's turn at the end. Messages refuses whitespace at its end. */
function trimPrefill(last: Turn | undefined): void {
  const block = last?.role === "assistant" ? last.content.at(-1) : undefined;
  if (last && block?.type === "text")
    last.content[last.content.length - 1] = { ...block, text: readString(block.text, "messages").trimEnd() };
}

/**
 * Converts the content of a Chat Completions user message to blocks of Messages. Text of only whitespace is left out.
 * @throws ConversionRefused for a part that Messages does not support, such as audio.
 */
export function userContentToMessages(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return isBlank(content) ? [] : [textBlock(content)];
  return readArray(content, path).flatMap((value, index): readonly JsonObject[] => {
    const partPath = `${path}.${index}`;
    const [part, mark] = takeCacheMark(readObject(value, partPath), partPath, dropped);
    switch (part.type) {
      case "text":
        return markedText(readText(part, partPath, dropped), mark, dropped);
      case "image_url":
        return [withCacheMark(imageToMessages(part, partPath, dropped), mark)];
      case "file":
        return [withCacheMark(fileToMessages(part, partPath, dropped), mark)];
      default:
        throw new ConversionRefused(partPath, `a part of type ${quoteName(part.type)} has no counterpart here`);
    }
  });
}

/**
 * Converts content that can only be text, such as an instruction, to text blocks. Text of only whitespace is left out, and a mark on it is
 * dropped.
 */
export function textsToMessages(content: Json | undefined, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return markedText(content, undefined, dropped);
  return readArray(content, path).flatMap((value, index) => {
    const [part, mark] = takeCacheMark(readObject(value, `${path}.${index}`), `${path}.${index}`, dropped);
    if (part.type === "text") return markedText(readText(part, `${path}.${index}`, dropped), mark, dropped);
    throw new ConversionRefused(`${path}.${index}`, `must be text, not ${quoteName(part.type)}`);
  });
}

/** Converts the assistant's content to text blocks. A refusal becomes text, too, because Messages has no other place for it. */
export function assistantTextsToMessages(message: JsonObject, path: string, dropped: Dropped): readonly JsonObject[] {
  const refusal = readOptional(message.refusal, `${path}.refusal`, readString);
  const said = isAbsent(message.content) ? [] : readSaid(message.content, `${path}.content`, dropped);
  return refusal === undefined ? said : [...said, ...markedText(refusal, undefined, dropped)];
}

function readSaid(content: Json, path: string, dropped: Dropped): readonly JsonObject[] {
  if (typeof content === "string") return markedText(content, undefined, dropped);
  return readArray(content, path).flatMap((value, index) => {
    const [part, mark] = takeCacheMark(readObject(value, `${path}.${index}`), `${path}.${index}`, dropped);
    if (part.type === "text") return markedText(readText(part, `${path}.${index}`, dropped), mark, dropped);
    if (part.type === "refusal") return markedText(readString(part.refusal, `${path}.${index}.refusal`), mark, dropped);
    throw new ConversionRefused(`${path}.${index}`, `a part of type ${quoteName(part.type)} has no counterpart here`);
  });
}

function markedText(text: string, mark: JsonObject | undefined, dropped: Dropped): readonly JsonObject[] {
  if (!isBlank(text)) return [withCacheMark(textBlock(text), mark)];
  if (mark) dropped.add("cache_control");
  return [];
}
