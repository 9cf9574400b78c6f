import { isRecord } from "../../kit/json-object.ts";
import { isBlank } from "../../kit/text.ts";
import type { MessagesDialect, ModelFacts } from "../../ports/models.ts";
import { PUBLISHED_MESSAGES_DIALECT } from "../../ports/models.ts";
import { fitAnswerSchema } from "./answer-schema.ts";
import { fitCacheMarks } from "./cache-marks.ts";
import { CallIds } from "./call-ids.ts";
import { fitImage, imageNote, MESSAGES_IMAGES, MESSAGES_MANY_IMAGES } from "./fit-image.ts";
import { fitThinking } from "./fit-thinking.ts";
import {
  changed,
  distinctTools,
  EMPTY_PLACEHOLDER,
  type FittedRequest,
  type JsonRecord,
  withoutPrefill,
} from "./fitted-request.ts";
import { ToolNames } from "./tool-names.ts";
import { fitToolSchema } from "./tool-schema.ts";

/** The longest name of a tool in the API reference of Messages. */
const TOOL_NAME = 128;

/** What the parts of one request need. */
interface Fitting {
  readonly takesImages: boolean;
  /** The most pixels of a side of an image. */
  readonly pixels: number;
  readonly names: ToolNames;
  readonly ids: CallIds;
  readonly dropped: Set<string>;
}

/** Makes a Messages request valid, as `fitChatRequest` does: names and ids of tools, schemas, images, thinking, and texts of white space alone. */
export function fitMessagesRequest(body: JsonRecord, facts: ModelFacts): FittedRequest {
  const { messages: dialect = PUBLISHED_MESSAGES_DIALECT, images } = facts;
  const fitting: Fitting = {
    takesImages: images !== false,
    pixels: countImages(body["messages"]) > MANY_IMAGES ? MESSAGES_MANY_IMAGES : MESSAGES_IMAGES,
    names: new ToolNames(TOOL_NAME),
    ids: new CallIds("any", Number.POSITIVE_INFINITY),
    dropped: new Set(),
  };
  const { names, dropped } = fitting;
  const fitted: Record<string, unknown> = { ...body };
  if (Array.isArray(body["tools"])) {
    const tools = body["tools"].map((tool) => fitTool(tool, names));
    fitted["tools"] = distinctTools(tools, (tool) => (isRecord(tool) ? tool["name"] : undefined), dropped);
  }
  if (Array.isArray(body["system"])) fitSystem(fitted, body["system"]);
  const choice = body["tool_choice"];
  if (isRecord(choice) && "name" in choice) fitted["tool_choice"] = changed(choice, { name: names.accepted(choice["name"]) });
  if (Array.isArray(body["messages"])) {
    const messages = body["messages"].map((message) =>
      isRecord(message) ? changed(message, { content: fitContent(message["content"], fitting) }) : message,
    );
    fitted["messages"] = dialect.prefill ? messages : withoutPrefill(messages);
    fitToolsOfHistory(fitted, messages);
  }
  if (fitCacheMarks(fitted)) dropped.add("cache_control");
  fitFormat(fitted);
  const most = dialect.maxTokens;
  if (most !== undefined && typeof fitted["max_tokens"] === "number" && fitted["max_tokens"] > most) fitted["max_tokens"] = most;
  fitThinking(fitted, dialect, dropped);
  fitSampling(fitted, dialect, dropped);
  return { body: fitted, toolNames: names.originals, dropped: [...dropped] };
}

/**
 * Models since Opus 4.1 and Sonnet 4.5 refuse `temperature` beside `top_p` (SalesforceAIResearch/MCP-Universe#49), and later ones both
 * (anomalyco/models.dev#1468). Of two, the temperature stays.
 */
function fitSampling(fitted: Record<string, unknown>, { sampling }: MessagesDialect, dropped: Set<string>): void {
  const leaveOut = (field: string) => {
    if (fitted[field] === undefined) return;
    if (field === "top_k" || fitted[field] !== 1) dropped.add(field);
    delete fitted[field];
  };
  if (sampling === "none") for (const field of ["temperature", "top_p", "top_k"]) leaveOut(field);
  if (sampling === "one" && fitted["temperature"] !== undefined) leaveOut("top_p");
}

/** A request with more images has the stricter limit. */
const MANY_IMAGES = 20;

function countImages(list: unknown): number {
  if (!Array.isArray(list)) return 0;
  return list.reduce<number>((count, each: unknown) => {
    if (!isRecord(each)) return count;
    return count + (each["type"] === "image" ? 1 : countImages(each["content"]));
  }, 0);
}

function fitSystem(fitted: Record<string, unknown>, blocks: readonly unknown[]): void {
  const said = blocks.filter((block) => !isBlankText(block));
  if (said.length > 0) fitted["system"] = said;
  else delete fitted["system"];
}

/**
 * Services refuse calls of tools in the conversation without tools in the request, such as a request for its summary: "toolConfig field must
 * be defined" (langgenius/dify#17545, aws-samples/bedrock-access-gateway#239). The called tools are named then, and no tool may be called.
 */
function fitToolsOfHistory(fitted: Record<string, unknown>, messages: readonly unknown[]): void {
  const { tools } = fitted;
  if (Array.isArray(tools) && tools.length > 0) return;
  const blocks = messages.flatMap((message) =>
    isRecord(message) && Array.isArray(message["content"]) ? (message["content"] as readonly unknown[]) : [],
  );
  const called = blocks.flatMap((block) => (isRecord(block) && block["type"] === "tool_use" ? [block["name"]] : []));
  if (called.length === 0) return;
  fitted["tools"] = [...new Set(called)].map((name) => ({ name, input_schema: { type: "object", properties: {} } }));
  fitted["tool_choice"] = { type: "none" };
}

function fitFormat(fitted: Record<string, unknown>): void {
  const config = fitted["output_config"];
  const format = isRecord(config) ? config["format"] : undefined;
  if (isRecord(config) && isRecord(format) && format["type"] === "json_schema")
    fitted["output_config"] = { ...config, format: { ...format, schema: fitAnswerSchema(format["schema"]) } };
}

function fitContent(content: unknown, fitting: Fitting): unknown {
  if (typeof content === "string") return isBlank(content) ? EMPTY_PLACEHOLDER : content;
  if (!Array.isArray(content)) return content;
  fitting.ids.next();
  const blocks = content.filter((block) => !isBlankText(block)).map((block) => fitBlock(block, fitting));
  return blocks.length === 0 ? EMPTY_PLACEHOLDER : blocks;
}

function fitBlock(block: unknown, fitting: Fitting): unknown {
  const { ids, names, takesImages, dropped } = fitting;
  if (!isRecord(block)) return block;
  switch (block["type"]) {
    case "tool_use":
      return changed(block, { id: ids.called(block["id"]), name: names.accepted(block["name"]) });
    case "tool_result": {
      const { content } = block;
      const said = Array.isArray(content)
        ? content.filter((each) => !isBlankText(each)).map((each) => fitBlock(each, fitting))
        : content;
      const isSame = Array.isArray(content) && Array.isArray(said) && same(content, said);
      return changed(block, { tool_use_id: ids.answered(block["tool_use_id"]), content: isSame ? content : said });
    }
    case "image":
      return fitImageBlock(block, fitting);
    case "document": {
      if (takesImages || !isRecord(block["source"]) || block["source"]["type"] !== "base64") return block;
      dropped.add("messages.content.document");
      return textBlock("[a file that cannot be shown here]", block);
    }
    default:
      return block;
  }
}

function fitImageBlock(block: JsonRecord, { takesImages, pixels, dropped }: Fitting): JsonRecord {
  const source = isRecord(block["source"]) ? block["source"] : {};
  const declared = typeof source["media_type"] === "string" ? source["media_type"] : "at an address";
  const data = source["type"] === "base64" ? source["data"] : undefined;
  const fitted = !takesImages
    ? { note: imageNote(declared) }
    : typeof data === "string"
      ? fitImage(declared, data, pixels)
      : { mediaType: declared };
  if ("note" in fitted) {
    dropped.add("messages.content.image");
    return textBlock(fitted.note, block);
  }
  return fitted.mediaType === declared ? block : { ...block, source: { ...source, media_type: fitted.mediaType } };
}

/** A note in place of a block. A cache mark stays. */
function textBlock(text: string, { cache_control: mark }: JsonRecord): JsonRecord {
  return { type: "text", text, ...(mark !== undefined && { cache_control: mark }) };
}

function same(first: readonly unknown[], second: readonly unknown[]): boolean {
  return first.length === second.length && first.every((each, at) => each === second[at]);
}

/** Messages refuses text blocks of white space alone: from then on, each request with the conversation (kibitz#87). */
function isBlankText(block: unknown): boolean {
  return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string" && isBlank(block["text"]);
}

function fitTool(tool: unknown, names: ToolNames): unknown {
  if (!isRecord(tool) || !("input_schema" in tool)) return tool;
  return changed(tool, { name: names.accepted(tool["name"]), input_schema: fitToolSchema(tool["input_schema"]) });
}
