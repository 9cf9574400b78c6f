import { hash } from "node:crypto";
import type { ChatDialect } from "../ports/models.ts";
import { isRecord } from "../kit/json-object.ts";
import { isBlank } from "../kit/text.ts";

type JsonRecord = Readonly<Record<string, unknown>>;

/** A request as a provider accepts it. */
export interface FittedRequest {
  /** Shares all values that did not change. */
  readonly body: JsonRecord;
  /** The names of tools that were replaced: the name that is sent, and the name that the caller uses. */
  readonly toolNames: ReadonlyMap<string, string>;
}

/** The longest names of tools in the API references of Chat Completions and of Messages. */
const CHAT_TOOL_NAME = 64;
const MESSAGES_TOOL_NAME = 128;
const HASH_CHARACTERS = 8;
/** The longest id of a call that vendors of Chat Completions accept: vercel/ai#5171. */
const CHAT_CALL_ID = 40;

/** Stands for the assistant where a vendor requires a turn of it. */
const ASSISTANT_PLACEHOLDER = "(continue)";
/** Stands for a message without content, which vendors refuse. */
export const EMPTY_PLACEHOLDER = "(empty message)";

/**
 * Makes a Chat Completions request valid for a provider of this dialect. It changes the form and never the meaning: names and ids of tools,
 * the order of roles, and fields that a vendor requires. The result is the same for the same request, so that caches of prefixes hold. What
 * it cannot read it leaves as it is, for the provider to refuse.
 */
export function fitChatRequest(body: JsonRecord, dialect: ChatDialect): FittedRequest {
  const names = new ToolNames(CHAT_TOOL_NAME);
  const fitted: Record<string, unknown> = { ...body };
  if (Array.isArray(body["tools"])) fitted["tools"] = body["tools"].map((tool) => fitTool(tool, names));
  const choice = body["tool_choice"];
  if (isRecord(choice)) fitted["tool_choice"] = fitNamed(choice, names);
  if (Array.isArray(body["messages"])) fitted["messages"] = fitMessages(body["messages"], dialect, names);
  return { body: fitted, toolNames: names.originals };
}

/** Makes a Messages request valid, as `fitChatRequest` does: names and ids of tools, schemas, and texts of white space alone. */
export function fitMessagesRequest(body: JsonRecord): FittedRequest {
  const names = new ToolNames(MESSAGES_TOOL_NAME);
  const ids = new CallIds("any", Number.POSITIVE_INFINITY);
  const fitBlock = (block: unknown): unknown => {
    if (!isRecord(block)) return block;
    if (block["type"] === "tool_use") return changed(block, { id: ids.called(block["id"]), name: names.accepted(block["name"]) });
    if (block["type"] !== "tool_result") return block;
    const { content } = block;
    const said = Array.isArray(content) && content.some(isBlankText) ? content.filter((each) => !isBlankText(each)) : content;
    return changed(block, { tool_use_id: ids.answered(block["tool_use_id"]), content: said });
  };
  const fitContent = (content: unknown): unknown => {
    if (typeof content === "string") return isBlank(content) ? EMPTY_PLACEHOLDER : content;
    if (!Array.isArray(content)) return content;
    ids.next();
    const blocks = content.filter((block) => !isBlankText(block)).map(fitBlock);
    return blocks.length === 0 ? EMPTY_PLACEHOLDER : blocks;
  };
  const fitted: Record<string, unknown> = { ...body };
  if (Array.isArray(body["tools"])) fitted["tools"] = body["tools"].map((tool) => fitMessagesTool(tool, names));
  const choice = body["tool_choice"];
  if (isRecord(choice) && "name" in choice) fitted["tool_choice"] = changed(choice, { name: names.accepted(choice["name"]) });
  if (Array.isArray(body["messages"]))
    fitted["messages"] = body["messages"].map((message) =>
      isRecord(message) ? changed(message, { content: fitContent(message["content"]) }) : message,
    );
  return { body: fitted, toolNames: names.originals };
}

/** Messages refuses text blocks of white space alone: from then on, each request with the conversation (kibitz#87). */
function isBlankText(block: unknown): boolean {
  return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string" && isBlank(block["text"]);
}

function fitMessagesTool(tool: unknown, names: ToolNames): unknown {
  if (!isRecord(tool) || !("input_schema" in tool)) return tool;
  return changed(tool, { name: names.accepted(tool["name"]), input_schema: withoutTopLevelChoice(tool["input_schema"]) });
}

/** The object with these values; itself if it has them. */
function changed(object: JsonRecord, values: JsonRecord): JsonRecord {
  return Object.entries(values).every(([key, value]) => object[key] === value) ? object : { ...object, ...values };
}

/** The text of a JSON document without lone surrogates, which servers refuse. `JSON.stringify` writes each of them as an escape. */
export function wellFormedJson(text: string): string {
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[^])/g, (escape) => (escape.length > 2 ? "\uFFFD" : escape));
}

/** Names of tools that a provider accepts, each from one name of the caller. */
class ToolNames {
  readonly originals = new Map<string, string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Valid names stay. Others get valid characters, and the beginning of their hash, so that two names never become one. Servers of MCP name
   * tools with over 64 characters (anomalyco/opencode#3523), and models invent names such as `functions.search web` (mcp-use/mcp-use#90).
   */
  accepted(name: unknown): unknown {
    if (typeof name !== "string" || (name.length <= this.#most && /^[a-zA-Z0-9_-]+$/.test(name))) return name;
    const end = hash("sha256", name, "hex").slice(0, HASH_CHARACTERS);
    const start = name.slice(0, this.#most - HASH_CHARACTERS - 1).replace(/[^a-zA-Z0-9_-]/g, "_");
    const fitted = `${start}_${end}`;
    this.originals.set(fitted, name);
    return fitted;
  }
}

function fitTool(tool: unknown, names: ToolNames): unknown {
  if (!isRecord(tool) || !isRecord(tool["function"])) return tool;
  const named = fitNamed(tool, names);
  const called = named["function"] as JsonRecord;
  const parameters = withoutTopLevelChoice(called["parameters"]);
  return parameters === called["parameters"] ? named : { ...named, function: { ...called, parameters } };
}

/** A tool, a call or a choice of a tool, with the name that is sent. */
function fitNamed(holder: JsonRecord, names: ToolNames): JsonRecord {
  const called = holder["function"];
  return isRecord(called) ? changed(holder, { function: changed(called, { name: names.accepted(called["name"]) }) }) : holder;
}

const CHOICES = ["anyOf", "oneOf", "allOf"] as const;

/**
 * Vendors refuse a whole request if the schema of a tool has a choice at its top (makenotion/notion-mcp-server#340). The properties of all
 * branches stay, as the model reads them. What is required stays if each branch requires it. The server of the tool checks its arguments.
 */
export function withoutTopLevelChoice(schema: unknown): unknown {
  if (!isRecord(schema) || !CHOICES.some((key) => key in schema)) return schema;
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const properties: Record<string, unknown> = Object.create(null);
  const required = new Set(textsOf(rest["required"]));
  for (const branches of [anyOf, oneOf, allOf]) {
    const objects = Array.isArray(branches) ? branches.filter(isRecord) : [];
    for (const { properties: own } of objects) if (isRecord(own)) Object.assign(properties, own);
    const lists = objects.map((branch) => textsOf(branch["required"]));
    const shared =
      branches === allOf ? lists.flat() : (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)));
    for (const name of shared) required.add(name);
  }
  Object.assign(properties, isRecord(rest["properties"]) ? rest["properties"] : {});
  return { ...rest, type: "object", properties: { ...properties }, ...(required.size > 0 && { required: [...required] }) };
}

function fitMessages(messages: readonly unknown[], dialect: ChatDialect, names: ToolNames): readonly unknown[] {
  const ids = new CallIds(dialect.toolIds, CHAT_CALL_ID);
  const fitted = messages.map((message) => (isRecord(message) ? fitMessage(message, dialect, names, ids) : message));
  const ordered = dialect.turns === "strict" ? strictTurns(fitted) : fitted;
  return dialect.userAfterTool ? ordered : ordered.flatMap((message, at) => withAssistantBefore(message, ordered[at - 1]));
}

function fitMessage(message: JsonRecord, dialect: ChatDialect, names: ToolNames, ids: CallIds): JsonRecord {
  if (message["role"] === "user" && typeof message["content"] === "string" && isBlank(message["content"]))
    return { ...message, content: EMPTY_PLACEHOLDER };
  if (message["role"] === "tool") return changed(message, { tool_call_id: ids.answered(message["tool_call_id"]) });
  if (message["role"] !== "assistant" || !Array.isArray(message["tool_calls"])) return message;
  ids.next();
  const made = message["tool_calls"].map((call) =>
    isRecord(call) ? changed(fitNamed(call, names), { id: ids.called(call["id"]) }) : call,
  );
  const calls = dialect.thoughtSignatures ? withSignature(made) : made;
  // DeepSeek refuses a call without the field while it thinks. An empty text is enough: anomalyco/opencode#24722.
  const lacksReasoning =
    dialect.reasoningOfCalls === "required" && calls.length > 0 && message["reasoning_content"] === undefined;
  return { ...message, tool_calls: calls, ...(lacksReasoning && { reasoning_content: "" }) };
}

/** Google's documented value for calls of another model, which have no signature: ai.google.dev/gemini-api/docs/thought-signatures. */
const NO_SIGNATURE = { google: { thought_signature: "skip_thought_signature_validator" } };

/** Gemini signs the first of the calls that it makes at once. */
function withSignature(calls: readonly unknown[]): readonly unknown[] {
  const [first, ...others] = calls;
  const isSigned = calls.some((call) => isRecord(call) && call["extra_content"] !== undefined);
  return isSigned || !isRecord(first) ? calls : [{ ...first, extra_content: NO_SIGNATURE }, ...others];
}

/** Ids of calls that are unique in a conversation, and the results that belong to them. */
class CallIds {
  readonly #form: ChatDialect["toolIds"];
  readonly #most: number;
  /** By the caller's id: the calls of the last message that used it, and how many results they have. */
  readonly #rounds = new Map<string, { readonly message: number; readonly ids: string[]; answered: number; calls: number }>();
  readonly #used = new Set<string>();
  #message = 0;

  constructor(form: ChatDialect["toolIds"], most: number) {
    this.#form = form;
    this.#most = most;
  }

  /** The next message of the assistant begins. */
  next(): void {
    this.#message += 1;
  }

  /** Models and servers repeat an id in one answer or in later rounds: HKUDS/nanobot#4473, QwenLM/qwen-code#8382. */
  called(id: unknown): unknown {
    if (typeof id !== "string") return id;
    const known = this.#rounds.get(id);
    const message = this.#message;
    const round = known?.message === message ? known : { message, ids: [], answered: 0, calls: known?.calls ?? 0 };
    let fitted;
    do fitted = this.#idOf(id, round.calls++);
    while (this.#used.has(fitted));
    this.#used.add(fitted);
    round.ids.push(fitted);
    this.#rounds.set(id, round);
    return fitted;
  }

  answered(id: unknown): unknown {
    if (typeof id !== "string") return id;
    const round = this.#rounds.get(id);
    if (!round) return this.#idOf(id, 0);
    const answer = round.ids[Math.min(round.answered, round.ids.length - 1)];
    round.answered += 1;
    return answer;
  }

  #idOf(id: string, before: number): string {
    const key = before === 0 ? id : `${id}\n${before}`;
    // Mistral: "Tool call id … must be a-z, A-Z, 0-9, with a length of 9" (langchain-ai/langchain#37756).
    if (this.#form === "nine") return before === 0 && /^[a-zA-Z0-9]{9}$/.test(id) ? id : hash("sha256", key, "hex").slice(0, 9);
    const isValid = before === 0 && id.length <= this.#most && /^[a-zA-Z0-9_-]+$/.test(id);
    return isValid ? id : `call_${hash("sha256", key, "hex").slice(0, 24)}`;
  }
}

/**
 * Templates of many models accept one system message, at the head, and turns that alternate: "System message must be at the beginning"
 * (ollama/ollama#17774, BerriAI/litellm#39852). Later instructions become marked text of the user, in their place. Neighbours of one role
 * become one message.
 */
function strictTurns(messages: readonly unknown[]): readonly unknown[] {
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
  return groups.map((group) => (group.length === 1 ? group[0] : joined(group as JsonRecord[])));
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
function withAssistantBefore(message: unknown, before: unknown): readonly unknown[] {
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

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
