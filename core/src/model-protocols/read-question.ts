import type { Json, JsonObject } from "./json.ts";
import {
  ConversionRefused,
  Dropped,
  dropUnknown,
  isAbsent,
  quoteName,
  readArray,
  readBoolean,
  readCount,
  readNumber,
  readObject,
  readOptional,
  readString,
  refuseMessagesOnly,
} from "./request/fields.ts";

/** A request of the Messages protocol, for a provider with a protocol of its own. */
export interface ModelQuestion {
  readonly model: string;
  /** The instructions. "" without any. */
  readonly system: string;
  /** In their order. Roles may repeat. */
  readonly turns: readonly QuestionTurn[];
  readonly tools: readonly QuestionTool[];
  /** Default: `auto` with tools. `isSingle`: the answer may have at most one call. */
  readonly toolChoice: QuestionToolChoice;
  /** Maximum tokens of the answer. */
  readonly maxTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
  /** Texts at which the answer ends. */
  readonly stopSequences: readonly string[];
  /** The JSON Schema that the text of the answer must fit. */
  readonly answerSchema: JsonObject | undefined;
  /** Whether the caller reads a stream. The answer is written accordingly: a provider needs it only for its own request. */
  readonly isStream: boolean;
  /** The caller's headers by lowercase name, without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole request, for fields that are not among these. Whole numbers beyond ±(2^53 - 1) are texts of their digits. */
  readonly body: JsonObject;
}

/** One message of the conversation. */
export interface QuestionTurn {
  readonly role: "user" | "assistant" | "system";
  /** All its text, without its other parts. */
  readonly text: string;
  readonly parts: readonly QuestionPart[];
}

/** One part of a message. */
export type QuestionPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly source: QuestionSource }
  | { readonly type: "document"; readonly source: QuestionSource; readonly title: string | undefined }
  /** Reasoning of an earlier answer, with the signature that the provider gave. `text` is "" for reasoning that is only `data`. */
  | { readonly type: "thinking"; readonly text: string; readonly signature: string | undefined; readonly data?: string }
  | { readonly type: "tool-call"; readonly id: string; readonly name: string; readonly arguments: JsonObject }
  | {
      readonly type: "tool-result";
      readonly id: string;
      /** All text of the result. */
      readonly text: string;
      readonly parts: readonly QuestionPart[];
      readonly isError: boolean;
    };

/** Bytes in base64, or an address that the provider must read. Documents can also be a text. */
export type QuestionSource =
  | { readonly type: "base64"; readonly mediaType: string; readonly data: string }
  | { readonly type: "url"; readonly url: string }
  | { readonly type: "text"; readonly text: string };

/** A tool that the caller runs. */
export interface QuestionTool {
  readonly name: string;
  readonly description: string | undefined;
  /** A JSON Schema of its arguments. */
  readonly schema: JsonObject;
}

/** Which tools the answer may or must call. */
export interface QuestionToolChoice {
  readonly type: "auto" | "any" | "none" | "tool";
  /** The tool that must be called, with `tool`. */
  readonly name?: string;
  readonly isSingle: boolean;
}

/** What a provider can carry beside text. */
export type QuestionAbility = "tools" | "images" | "documents" | "thinking" | "schema";

const READ_FIELDS = new Set([
  "model",
  "messages",
  "system",
  "max_tokens",
  "temperature",
  "top_p",
  "top_k",
  "stop_sequences",
  "stream",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
]);

/**
 * Reads the body of a Messages request. `takes` lists what the provider can carry. `dropped` names what was left out without changing the
 * meaning.
 * @throws ConversionRefused with the name of the first field that is invalid, or that the provider cannot carry.
 */
export function readQuestion(
  body: JsonObject,
  takes: readonly QuestionAbility[] = [],
  headers: Readonly<Record<string, string>> = {},
): { readonly question: ModelQuestion; readonly dropped: readonly string[] } {
  const dropped = new Dropped();
  const can = new Set(takes);
  refuseMessagesOnly(body);
  dropUnknown(body, READ_FIELDS, "", dropped);
  if (!can.has("thinking") && !isAbsent(body.thinking)) dropped.add("thinking");
  const reader = new PartReader(can, dropped);
  const tools = readTools(body.tools);
  if (tools.length > 0) refuseWithout(can, "tools", "tools");
  const answerSchema = readAnswerSchema(body, dropped, can);
  if (answerSchema) refuseWithout(can, "schema", isAbsent(body.output_format) ? "output_config.format" : "output_format");
  const question: ModelQuestion = {
    model: readString(body.model, "model"),
    system: reader.text(body.system, "system"),
    turns: readArray(body.messages, "messages").map((value, at) => reader.turn(value, `messages.${at}`)),
    tools,
    toolChoice: readToolChoice(body.tool_choice),
    maxTokens: readOptional(body.max_tokens, "max_tokens", readCount),
    temperature: readOptional(body.temperature, "temperature", readNumber),
    topP: readOptional(body.top_p, "top_p", readNumber),
    topK: readOptional(body.top_k, "top_k", readNumber),
    stopSequences: (readOptional(body.stop_sequences, "stop_sequences", readArray) ?? []).map((each, at) =>
      readString(each, `stop_sequences.${at}`),
    ),
    answerSchema,
    isStream: readOptional(body.stream, "stream", readBoolean) ?? false,
    headers,
    body,
  };
  return { question, dropped: dropped.fields };
}

const WITHOUT: Readonly<Record<QuestionAbility, string>> = {
  tools: "this provider calls no tools",
  images: "this provider takes no images",
  documents: "this provider takes no documents",
  thinking: "this provider takes no reasoning of earlier turns",
  schema: "this provider can't promise the form of an answer",
};

function refuseWithout(can: ReadonlySet<QuestionAbility>, ability: QuestionAbility, path: string): void {
  if (!can.has(ability)) throw new ConversionRefused(path, WITHOUT[ability]);
}

/** The parts of messages. Messages are read in full before a provider sees the first. */
class PartReader {
  readonly #can: ReadonlySet<QuestionAbility>;
  readonly #dropped: Dropped;

  constructor(can: ReadonlySet<QuestionAbility>, dropped: Dropped) {
    this.#can = can;
    this.#dropped = dropped;
  }

  text(value: Json | undefined, path: string): string {
    return isAbsent(value) ? "" : textOf(this.#parts(value, path));
  }

  turn(value: Json, path: string): QuestionTurn {
    const { role, content } = readObject(value, path);
    if (role !== "user" && role !== "assistant" && role !== "system")
      throw new ConversionRefused(`${path}.role`, "must be user or assistant");
    const parts = this.#parts(content, `${path}.content`);
    return { role, text: textOf(parts), parts };
  }

  #parts(content: Json | undefined, path: string): readonly QuestionPart[] {
    if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
    return readArray(content ?? [], path).flatMap((value, at) => {
      const part = this.#part(readObject(value, `${path}.${at}`), `${path}.${at}`);
      return part ? [part] : [];
    });
  }

  #part(block: JsonObject, path: string): QuestionPart | undefined {
    if (!isAbsent(block.cache_control)) this.#dropped.add("cache_control");
    switch (block.type) {
      case "text":
        return { type: "text", text: readString(block.text, `${path}.text`) };
      case "image":
        refuseWithout(this.#can, "images", path);
        return { type: "image", source: readSource(block.source, `${path}.source`) };
      case "document": {
        const source = readSource(block.source, `${path}.source`);
        const title = readOptional(block.title, `${path}.title`, readString);
        if (this.#can.has("documents")) return { type: "document", source, title };
        // A document that is a text is one for every model.
        if (source.type === "text")
          return { type: "text", text: title === undefined ? source.text : `${title}\n\n${source.text}` };
        throw new ConversionRefused(path, WITHOUT.documents);
      }
      case "search_result":
        return { type: "text", text: this.#searchResult(block, path) };
      case "thinking":
      case "redacted_thinking":
        return this.#thinking(block, path);
      case "tool_use":
        refuseWithout(this.#can, "tools", path);
        return {
          type: "tool-call",
          id: readString(block.id, `${path}.id`),
          name: readString(block.name, `${path}.name`),
          arguments: isAbsent(block.input) ? {} : readObject(block.input, `${path}.input`),
        };
      case "tool_result": {
        refuseWithout(this.#can, "tools", path);
        const parts = this.#parts(block.content ?? [], `${path}.content`);
        const isError = readOptional(block.is_error, `${path}.is_error`, readBoolean) ?? false;
        return {
          type: "tool-result",
          id: readString(block.tool_use_id, `${path}.tool_use_id`),
          text: textOf(parts),
          parts,
          isError,
        };
      }
      case "tool_reference":
        return { type: "text", text: `[tool found: ${readString(block.tool_name, `${path}.tool_name`)}]` };
      default:
        throw new ConversionRefused(path, `${quoteName(block.type)} has no counterpart here`);
    }
  }

  #thinking(block: JsonObject, path: string): QuestionPart | undefined {
    if (!this.#can.has("thinking")) {
      this.#dropped.add("messages.content.thinking");
      return undefined;
    }
    if (block.type === "redacted_thinking")
      return { type: "thinking", text: "", signature: undefined, data: readString(block.data, `${path}.data`) };
    const signature = readOptional(block.signature, `${path}.signature`, readString);
    return { type: "thinking", text: readString(block.thinking, `${path}.thinking`), signature: signature || undefined };
  }

  #searchResult(block: JsonObject, path: string): string {
    const title = readOptional(block.title, `${path}.title`, readString) ?? "";
    const source = readOptional(block.source, `${path}.source`, readString) ?? "";
    return [title, source, this.text(block.content, `${path}.content`)].filter((line) => line !== "").join("\n");
  }
}

function textOf(parts: readonly QuestionPart[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");
}

function readSource(value: Json | undefined, path: string): QuestionSource {
  const source = readObject(value, path);
  switch (source.type) {
    case "base64": {
      const mediaType = readString(source.media_type, `${path}.media_type`);
      return { type: "base64", mediaType, data: readString(source.data, `${path}.data`) };
    }
    case "url":
      return { type: "url", url: readString(source.url, `${path}.url`) };
    case "text":
      return { type: "text", text: readString(source.data, `${path}.data`) };
    default:
      throw new ConversionRefused(path, "this provider can't read files stored elsewhere");
  }
}

function readTools(value: Json | undefined): readonly QuestionTool[] {
  return (readOptional(value, "tools", readArray) ?? []).map((each, at) => {
    const path = `tools.${at}`;
    const tool = readObject(each, path);
    // Other types are tools that only the publisher of the protocol runs.
    if (!isAbsent(tool.type) && tool.type !== "custom")
      throw new ConversionRefused(path, `a tool of type ${quoteName(tool.type)} has no counterpart here`);
    return {
      name: readString(tool.name, `${path}.name`),
      description: readOptional(tool.description, `${path}.description`, readString),
      schema: readObject(tool.input_schema, `${path}.input_schema`),
    };
  });
}

function readToolChoice(value: Json | undefined): QuestionToolChoice {
  const choice = readOptional(value, "tool_choice", readObject) ?? { type: "auto" };
  const { type } = choice;
  const isSingle = readOptional(choice.disable_parallel_tool_use, "tool_choice.disable_parallel_tool_use", readBoolean) ?? false;
  if (type === "tool") return { type, name: readString(choice.name, "tool_choice.name"), isSingle };
  if (type === "auto" || type === "any" || type === "none") return { type, isSingle };
  throw new ConversionRefused("tool_choice.type", "must be auto, any, none or tool");
}

/** `output_format` is the older name of `output_config.format`. */
function readAnswerSchema(body: JsonObject, dropped: Dropped, can: ReadonlySet<QuestionAbility>): JsonObject | undefined {
  const config = readOptional(body.output_config, "output_config", readObject);
  if (!isAbsent(config?.effort) && !can.has("thinking")) dropped.add("output_config.effort");
  const [format, path] = isAbsent(body.output_format)
    ? [config?.format, "output_config.format"]
    : [body.output_format, "output_format"];
  const read = readOptional(format, path, readObject);
  return read && readObject(read.schema, `${path}.schema`);
}
