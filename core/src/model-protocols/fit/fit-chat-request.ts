import { isRecord } from "../../kit/json-object.ts";
import { isBlank } from "../../kit/text.ts";
import type { ChatDialect, ModelFacts } from "../../ports/models.ts";
import { PUBLISHED_CHAT_DIALECT } from "../../ports/models.ts";
import { fitCacheMarks } from "./cache-marks.ts";
import { withAnswerInWords } from "./answer-in-words.ts";
import { CallIds } from "./call-ids.ts";
import { strictTurns, withAssistantBefore } from "./chat-turns.ts";
import { fitMediaPart } from "./fit-media-part.ts";
import {
  changed,
  distinctTools,
  EMPTY_PLACEHOLDER,
  type FittedRequest,
  type JsonRecord,
  NO_OUTPUT,
  THINKING_OFF,
  withoutPrefill,
} from "./fitted-request.ts";
import { googleSchema } from "./google-schema.ts";
import { withRequiredTool } from "./required-tool.ts";
import { ToolNames } from "./tool-names.ts";
import { fitToolSchema, withTypedBranches } from "./tool-schema.ts";

/** The longest name of a tool in the API reference of Chat Completions. */
const TOOL_NAME = 64;
/** The longest id of a call that vendors of Chat Completions accept: vercel/ai#5171. */
const CALL_ID = 40;

/** What the parts of one request need. */
interface Fitting {
  readonly dialect: ChatDialect;
  readonly takesImages: boolean;
  readonly names: ToolNames;
  readonly ids: CallIds;
  readonly dropped: Set<string>;
}

/**
 * Makes a Chat Completions request valid for a model. It changes the form and never the meaning: names and ids of tools, the order of roles,
 * types of images, and fields that a vendor requires. What the model does not take is left out and reported. The result is the same for the
 * same request, so that caches of prefixes hold. What it cannot read it leaves as it is, for the provider to refuse.
 */
export function fitChatRequest(body: JsonRecord, facts: ModelFacts): FittedRequest {
  const { chat: dialect = PUBLISHED_CHAT_DIALECT, images } = facts;
  const fitting: Fitting = {
    dialect,
    takesImages: images !== false,
    names: new ToolNames(TOOL_NAME, { beginsWithLetter: true }),
    ids: new CallIds(dialect.toolIds, CALL_ID),
    dropped: new Set(),
  };
  const { names, dropped } = fitting;
  const fitted: Record<string, unknown> = { ...body };
  if (Array.isArray(body["tools"])) {
    const tools = body["tools"].map((tool) => fitTool(tool, names, dialect.toolSchemas));
    fitted["tools"] = distinctTools(tools, nameOfTool, dropped);
  }
  const choice = body["tool_choice"];
  if (isRecord(choice)) fitted["tool_choice"] = fitNamed(choice, names);
  if (Array.isArray(body["messages"])) fitted["messages"] = fitMessages(body["messages"], fitting);
  if (dialect.cacheMarks && fitCacheMarks(fitted)) dropped.add("cache_control");
  fitSampling(fitted, fitting);
  fitEffort(fitted, fitting);
  fitThinkingSwitch(fitted, fitting);
  const stopSequences = dialect.stop ? [] : takeStops(fitted);
  const forced = dialect.toolChoice === "words" ? withRequiredTool(fitted) : fitted;
  return { body: withKnownAnswer(forced, fitting), toolNames: names.originals, dropped: [...dropped], stopSequences };
}

/** A model that thinks by itself does not call a forced tool while it thinks: deepseek-ai/DeepSeek-V3#1376, can1357/oh-my-pi#1077. */
function fitThinkingSwitch(fitted: Record<string, unknown>, { dialect: { thinkingSwitch: member }, dropped }: Fitting): void {
  const choice = fitted["tool_choice"];
  if (member === "none" || !(choice === "required" || isRecord(choice))) return;
  fitted[member] = THINKING_OFF[member];
  // "cannot specify both 'thinking' and 'reasoning_effort'": HKUDS/nanobot#3939.
  if (fitted["reasoning_effort"] !== undefined) dropped.add("reasoning_effort");
  delete fitted["reasoning_effort"];
}

function takeStops(fitted: Record<string, unknown>): readonly string[] {
  const { stop } = fitted;
  delete fitted["stop"];
  return Array.isArray(stop) ? stop.filter((each) => typeof each === "string") : [];
}

function withKnownAnswer(body: JsonRecord, { dialect, dropped }: Fitting): JsonRecord {
  const described = dialect.answerSchema ? undefined : withAnswerInWords(body);
  if (described) dropped.add("response_format");
  return described ?? body;
}

function nameOfTool(tool: unknown): unknown {
  return isRecord(tool) && isRecord(tool["function"]) ? tool["function"]["name"] : undefined;
}

function fitSampling(fitted: Record<string, unknown>, { dialect, dropped }: Fitting): void {
  if (dialect.sampling) return;
  // 1 is the default, and accepted.
  for (const field of ["temperature", "top_p"]) {
    if (fitted[field] === undefined) continue;
    if (fitted[field] !== 1) dropped.add(field);
    delete fitted[field];
  }
}

/** Some models refuse tools together with an effort, and some refuse tools without the effort `none`: openai/openai-openapi#541, BerriAI/litellm#34569. */
function fitEffort(fitted: Record<string, unknown>, { dialect, dropped }: Fitting): void {
  if (dialect.effortWithTools === "any" || !Array.isArray(fitted["tools"]) || fitted["tools"].length === 0) return;
  const effort = fitted["reasoning_effort"];
  if (effort !== undefined && effort !== "none") dropped.add("reasoning_effort");
  delete fitted["reasoning_effort"];
  if (dialect.effortWithTools === "none") fitted["reasoning_effort"] = "none";
}

function fitTool(tool: unknown, names: ToolNames, form: ChatDialect["toolSchemas"]): unknown {
  if (!isRecord(tool) || !isRecord(tool["function"])) return tool;
  const named = fitNamed(tool, names);
  const called = named["function"] as JsonRecord;
  const schema = fitToolSchema(called["parameters"]);
  const parameters = form === "any" ? schema : form === "google" ? googleSchema(schema) : withTypedBranches(schema);
  return parameters === called["parameters"] ? named : { ...named, function: { ...called, parameters } };
}

/** A tool, a call or a choice of a tool, with the name that is sent. */
function fitNamed(holder: JsonRecord, names: ToolNames): JsonRecord {
  const called = holder["function"];
  return isRecord(called) ? changed(holder, { function: changed(called, { name: names.accepted(called["name"]) }) }) : holder;
}

function fitMessages(messages: readonly unknown[], fitting: Fitting): readonly unknown[] {
  const { dialect } = fitting;
  const fitted = messages.map((message) => (isRecord(message) ? fitMessage(message, fitting) : message));
  const ordered = dialect.turns === "strict" ? strictTurns(fitted) : fitted;
  const spaced = dialect.userAfterTool
    ? ordered
    : ordered.flatMap((message, at) => withAssistantBefore(message, ordered[at - 1]));
  return dialect.prefill ? spaced : withoutPrefill(spaced);
}

function fitMessage(message: JsonRecord, fitting: Fitting): JsonRecord {
  const { dialect, names, ids } = fitting;
  if (message["role"] === "user") return changed(message, { content: fitContent(message["content"], fitting) });
  if (message["role"] === "tool")
    return changed(message, {
      tool_call_id: ids.answered(message["tool_call_id"]),
      content: said(message["content"], NO_OUTPUT),
    });
  if (message["role"] !== "assistant") return message;
  if (!Array.isArray(message["tool_calls"])) return changed(message, { content: said(message["content"], EMPTY_PLACEHOLDER) });
  ids.next();
  const made = message["tool_calls"].map((call) =>
    isRecord(call) ? changed(fitNamed(call, names), { id: ids.called(call["id"]) }) : call,
  );
  const calls = dialect.thoughtSignatures ? withSignature(made) : made;
  // DeepSeek refuses a call without the field while it thinks. An empty text is enough: anomalyco/opencode#24722.
  const lacksReasoning =
    dialect.reasoningOfCalls === "required" && calls.length > 0 && message["reasoning_content"] === undefined;
  // Ollama refuses null, and Gemini an empty text: pydantic/pydantic-ai#5206, odysseus-dev/odysseus#837.
  const isSilent = dialect.contentOfCalls === "empty" && (message["content"] === null || message["content"] === undefined);
  return { ...message, ...(isSilent && { content: "" }), tool_calls: calls, ...(lacksReasoning && { reasoning_content: "" }) };
}

/** MiniMax and GLM refuse messages without a text, also of tools: "chat content is empty" (earendil-works/pi#3365). */
function said(content: unknown, placeholder: string): unknown {
  return typeof content === "string" && isBlank(content) ? placeholder : content;
}

function fitContent(content: unknown, fitting: Fitting): unknown {
  if (typeof content === "string") return said(content, EMPTY_PLACEHOLDER);
  if (!Array.isArray(content)) return content;
  const parts = content.map((part) => (isRecord(part) ? fitPart(part, fitting) : part));
  // Servers of models without images often accept only a text: DayuanJiang/next-ai-draw-io#326.
  const isText = !fitting.takesImages && parts.every((part) => isRecord(part) && part["type"] === "text");
  return isText ? parts.map((part) => String((part as JsonRecord)["text"])).join("\n\n") : parts;
}

function fitPart(part: JsonRecord, { takesImages, dropped }: Fitting): JsonRecord {
  const fitted = fitMediaPart(part, takesImages);
  if (fitted["type"] !== part["type"]) dropped.add(`messages.content.${String(part["type"])}`);
  return fitted;
}

/** Google's documented value for calls of another model, which have no signature: ai.google.dev/gemini-api/docs/thought-signatures. */
const NO_SIGNATURE = { google: { thought_signature: "skip_thought_signature_validator" } };

/** Gemini signs the first of the calls that it makes at once. */
function withSignature(calls: readonly unknown[]): readonly unknown[] {
  const [first, ...others] = calls;
  const isSigned = calls.some((call) => isRecord(call) && call["extra_content"] !== undefined);
  return isSigned || !isRecord(first) ? calls : [{ ...first, extra_content: NO_SIGNATURE }, ...others];
}
