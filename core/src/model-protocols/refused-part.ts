import { isRecord } from "../kit/json-object.ts";
import type { ModelProtocol } from "../ports/models.ts";
import type { JsonRecord, LighterRequest } from "./fit/fitted-request.ts";
import { isJsonObject } from "./json.ts";
import type { ModelError } from "./model-events.ts";
import { withoutStrictAnswer, withSmallerLimit, withToolChoice } from "./refused-setting.ts";

/** Statuses with which providers refuse a part of a request. */
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 413, 415, 422]);

/** Whether providers refuse a part of a request with this status. */
export function refusesPart(status: number): boolean {
  return REFUSALS.has(status);
}

/** Parameters that tune an answer and do not decide what it is about. */
const TUNING = [
  "temperature",
  "top_p",
  "top_k",
  "frequency_penalty",
  "presence_penalty",
  "reasoning_effort",
  "parallel_tool_calls",
  "stream_options",
  "service_tier",
  "safety_identifier",
  "user",
  "metadata",
] as const;

/** Members within messages and tools that only help a provider that knows them. */
const HINTS = ["cache_control", "reasoning_content", "reasoning_details", "strict"] as const;

/** Words of vendors for content that a model does not read. */
const MEDIA: readonly (readonly [kind: string, words: RegExp, types: ReadonlySet<unknown>])[] = [
  ["image", /\bimages?\b|image_url|input_image|\bvision\b|multimodal/, new Set(["image", "image_url"])],
  ["document", /\bpdf\b|\bdocuments?\b|\bfiles?\b|input_file|file_data|file_url/, new Set(["document", "file"])],
  ["audio", /\baudio\b/, new Set(["audio", "input_audio"])],
];

/**
 * The request without the part that the refusal names: an image, a file, thinking of earlier turns, a parameter that tunes the answer. It is
 * for one more attempt: one refused part would else make each later request of the conversation fail. Undefined if the refusal names no such
 * part of this request, and for a conversation that is too long.
 */
export function withoutRefusedPart(
  protocol: ModelProtocol,
  body: JsonRecord,
  status: number,
  error: ModelError,
): LighterRequest | undefined {
  if (!refusesPart(status)) return undefined;
  const text = `"${error.param ?? ""}" ${error.message}`.toLowerCase();
  const limited = withOtherLimit(body, text) ?? withSmallerLimit(body, text);
  if (limited || /context|too many tokens|prompt is too long/.test(text)) return limited;
  return (
    asStream(protocol, body, text) ??
    withoutStop(body, text) ??
    withToolChoice(protocol, body, text) ??
    withoutThinking(protocol, body, text) ??
    withoutParameter(body, text) ??
    withoutHint(body, text) ??
    withoutStrictAnswer(protocol, body, text) ??
    withShorterDescriptions(body, text) ??
    withoutMedia(protocol, body, text)
  );
}

/** The two names of the limit in Chat Completions: "use 'max_completion_tokens' instead". */
function withOtherLimit(body: JsonRecord, text: string): LighterRequest | undefined {
  for (const [sent, other] of [
    ["max_tokens", "max_completion_tokens"],
    ["max_completion_tokens", "max_tokens"],
  ] as const) {
    const { [sent]: limit, ...rest } = body;
    const isRefused = names(text, sent) && /unsupported|unrecognized|unknown|not (?:supported|permitted)|extra/.test(text);
    if (limit !== undefined && body[other] === undefined && isRefused) return { body: { ...rest, [other]: limit }, dropped: [] };
  }
  return undefined;
}

/**
 * Some models answer only as a stream: FoundationAgents/OpenManus#330, musistudio/claude-code-router#948. Both forms of answers are read. Others
 * think only in a stream: langchain4j/langchain4j#3974.
 */
function asStream(protocol: ModelProtocol, body: JsonRecord, text: string): LighterRequest | undefined {
  if (protocol !== "chat-completions" || body["stream"] === true) return undefined;
  if (/enable_thinking/.test(text) && /\bbe (?:set to )?["'`]?false\b/.test(text))
    return { body: { ...body, enable_thinking: false }, dropped: [] };
  if (!/only supports? stream|enable the stream parameter|not be support\w* when `?stream=false/.test(text)) return undefined;
  return { body: { ...body, stream: true }, dropped: [] };
}

/** The answer is ended here then: huggingface/smolagents#1671, BerriAI/litellm#12635. */
function withoutStop(body: JsonRecord, text: string): LighterRequest | undefined {
  const { stop, ...rest } = body;
  const isRefused = names(text, "stop") && /unsupported|not supported|does not support/.test(text);
  if (!Array.isArray(stop) || !isRefused) return undefined;
  return { body: rest, dropped: [], stopSequences: stop.filter((each) => typeof each === "string") };
}

/** "Invalid 'tools[2].function.description': string too long. Expected a string with maximum length 1024": OpenHands/OpenHands#4838. */
function withShorterDescriptions(body: JsonRecord, text: string): LighterRequest | undefined {
  const most = Number(/maximum length (\d{2,5})(?!\d)/.exec(text)?.[1]);
  if (!/\bdescription\b/.test(text) || !Array.isArray(body["tools"]) || !Number.isFinite(most)) return undefined;
  const shorten = (holder: JsonRecord): JsonRecord =>
    typeof holder["description"] === "string" && holder["description"].length > most
      ? { ...holder, description: `${holder["description"].slice(0, most - 1).toWellFormed()}…` }
      : holder;
  const tools = body["tools"].map((tool: unknown) => {
    if (!isRecord(tool)) return tool;
    return isRecord(tool["function"]) ? { ...tool, function: shorten(tool["function"]) } : shorten(tool);
  });
  return { body: { ...body, tools }, dropped: ["tools.description"] };
}

/** A signature of another model, or thinking that the model does not know. */
function withoutThinking(protocol: ModelProtocol, body: JsonRecord, text: string): LighterRequest | undefined {
  if (protocol !== "messages" || !/thinking|signature|effort/.test(text)) return undefined;
  if (/signature|thinking` (?:or `redacted_thinking`)? ?blocks?|redacted_thinking/.test(text)) {
    const cut = withBlocks(body, (block) => (isThinking(block) ? [] : undefined));
    if (cut) return { body: withoutFields(cut, ["thinking"]), dropped: ["messages.content.thinking"] };
  }
  const config = isRecord(body["output_config"]) ? body["output_config"] : {};
  if (body["thinking"] === undefined && config["effort"] === undefined) return undefined;
  const { effort: _effort, ...others } = config;
  const rest = withoutFields(body, ["thinking", "output_config"]);
  return {
    body: Object.keys(others).length > 0 ? { ...rest, output_config: others } : rest,
    dropped: [
      ...(body["thinking"] === undefined ? [] : ["thinking"]),
      ...(config["effort"] === undefined ? [] : ["output_config.effort"]),
    ],
  };
}

function isThinking(block: JsonRecord): boolean {
  return block["type"] === "thinking" || block["type"] === "redacted_thinking";
}

function withoutParameter(body: JsonRecord, text: string): LighterRequest | undefined {
  const refused = TUNING.filter((field) => body[field] !== undefined && names(text, field));
  return refused.length === 0 ? undefined : { body: withoutFields(body, refused), dropped: refused };
}

function withoutHint(body: JsonRecord, text: string): LighterRequest | undefined {
  const hint = HINTS.find((field) => names(text, field));
  if (hint === undefined) return undefined;
  const strip = (value: unknown, depth: number): unknown => {
    if (depth === 0) return value;
    if (Array.isArray(value)) return value.map((each) => strip(each, depth - 1));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, each]) => (key === hint ? [] : [[key, strip(each, depth - 1)]])),
    );
  };
  // Parts of results are five levels below: messages, message, content, result, content, part.
  const parts = ["messages", "tools", "system"].flatMap((field) =>
    body[field] === undefined ? [] : [[field, strip(body[field], 7)]],
  );
  const lighter = { ...withoutFields(body, [hint]), ...Object.fromEntries(parts) };
  return JSON.stringify(lighter) === JSON.stringify(body) ? undefined : { body: lighter, dropped: [hint] };
}

/** Fields that are also words of sentences, such as "roles must alternate between user and assistant". They count only in quotation marks. */
const PLAIN_WORDS: ReadonlySet<string> = new Set(["user", "metadata", "strict"]);

/** The field as a word of its own, and not as the tail of a longer one. */
function names(text: string, field: string): boolean {
  for (let at = text.indexOf(field); at !== -1; at = text.indexOf(field, at + 1)) {
    const before = text[at - 1];
    const isAlone = !isWord(before) && !isWord(text[at + field.length]);
    if (isAlone && (!PLAIN_WORDS.has(field) || (before !== undefined && /["'`]/.test(before)))) return true;
  }
  return false;
}

function isWord(character: string | undefined): boolean {
  return character !== undefined && /\w/.test(character);
}

function withoutMedia(protocol: ModelProtocol, body: JsonRecord, text: string): LighterRequest | undefined {
  for (const [kind, words, types] of MEDIA) {
    if (!words.test(text)) continue;
    const named = namedPlace(protocol, text);
    const isIt = (block: JsonRecord) => types.has(block["type"]);
    const note = () => [{ type: "text", text: `[${kind === "image" ? "an image" : "a file"} that the provider refused]` }];
    const cut =
      (named && withBlocks(body, (block, at) => (at === named && isIt(block) ? note() : undefined))) ??
      withBlocks(body, (block) => (isIt(block) ? note() : undefined));
    if (cut) return { body: cut, dropped: [`messages.content.${kind}`] };
  }
  return undefined;
}

/** `messages.3.content.1`, which Messages names. */
function namedPlace(protocol: ModelProtocol, text: string): string | undefined {
  const found = protocol === "messages" ? /messages\.(\d+)\.content\.(\d+)/.exec(text) : null;
  return found ? `${found[1]}.${found[2]}` : undefined;
}

type Replace = (block: JsonRecord, place: string) => readonly JsonRecord[] | undefined;

/** The body with blocks of its messages replaced, also those within results. Undefined if none is. */
function withBlocks(body: JsonRecord, replace: Replace): JsonRecord | undefined {
  if (!Array.isArray(body["messages"])) return undefined;
  let isChanged = false;
  const through = (content: readonly unknown[], placeOf: (at: number) => string): unknown[] =>
    content.flatMap((block, at): unknown[] => {
      if (!isRecord(block)) return [block];
      const replaced = replace(block, placeOf(at));
      if (replaced) {
        isChanged = true;
        return [...replaced];
      }
      const inner = block["content"];
      return block["type"] === "tool_result" && Array.isArray(inner)
        ? [{ ...block, content: through(inner, () => placeOf(at)) }]
        : [block];
    });
  const messages = body["messages"].flatMap((message: unknown, index): unknown[] => {
    if (!isRecord(message) || !Array.isArray(message["content"])) return [message];
    const content = through(message["content"], (at) => `${index}.${at}`);
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return isChanged ? { ...body, messages } : undefined;
}

function withoutFields(body: JsonRecord, fields: readonly string[]): JsonRecord {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !fields.includes(key)));
}
