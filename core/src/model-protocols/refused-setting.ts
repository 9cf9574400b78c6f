import { isRecord } from "../kit/json-object.ts";
import type { ModelProtocol } from "../ports/models.ts";
import type { JsonRecord, LighterRequest } from "./fit/fitted-request.ts";
import { answerInstruction, withAnswerInWords } from "./fit/answer-in-words.ts";
import { withRequiredTool } from "./fit/required-tool.ts";

/** Fewer tokens are no answer: the conversation is too long. */
const LEAST_TOKENS = 512;
const LIMITS = ["max_completion_tokens", "max_tokens"] as const;

/**
 * The request with the limit that the refusal allows. Callers ask for the longest answer of another model (claude-code-best/claude-code#272,
 * enoch3712/ExtractThinker#346), or their conversation leaves less than that (docker/docker-agent#569, vllm-project/vllm#42474).
 */
export function withSmallerLimit(body: JsonRecord, text: string): LighterRequest | undefined {
  const field = LIMITS.find((each) => typeof body[each] === "number");
  const limit = field && (body[field] as number);
  if (
    field === undefined ||
    limit === undefined ||
    !/max_tokens|max_completion_tokens|max_output|maximum tokens|tokens/.test(text)
  )
    return undefined;
  const most = roomIn(text, limit) ?? boundIn(text);
  if (most === undefined || most >= limit || most < LEAST_TOKENS) return undefined;
  return { body: withBudget({ ...body, [field]: most }, most), dropped: [field] };
}

/** What the context of the model leaves for the answer, in the words of Messages, OpenAI, OpenRouter and vLLM. */
function roomIn(text: string, limit: number): number | undefined {
  const sum = /(?<!\d)(\d{1,9}) \+ (\d{1,9}) > (\d{1,9})/.exec(text);
  if (sum && Number(sum[2]) === limit) return Number(sum[3]) - Number(sum[1]);
  const context = numberIn(text, /context (?:length|window|limit)\D{1,12}(\d{1,9}) tokens/);
  if (context === undefined) return undefined;
  const atLeast = numberIn(text, /at least (\d+) input tokens/);
  // vLLM counts no further than it must, so the prompt may be longer.
  if (atLeast !== undefined) return Math.floor((context - atLeast) / 2);
  const input = numberIn(text, /(?<!\d)(\d{1,9}) input tokens/);
  const all = numberIn(text, /requested (?:about )?(\d+) tokens/);
  return input === undefined ? all && context - (all - limit) : context - input;
}

/** `[1, 8192]`, or words for it. */
const RANGE = /(?:\[\s?\d{1,9},|less than or equal to)\W{0,2}(\d{1,9})/;

/** The longest answer of the model. */
function boundIn(text: string): number | undefined {
  return (
    numberIn(text, /at most (\d+) (?:completion|output)/) ??
    numberIn(text, /> (\d+), which is the maximum/) ??
    (/max\w{0,12}tokens/.test(text) ? numberIn(text, RANGE) : undefined) ??
    (/maximum tokens/.test(text) ? numberIn(text, /limit of (\d+)/) : undefined)
  );
}

function numberIn(text: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(text)?.[1];
  return found === undefined || found.length > 9 ? undefined : Number(found);
}

/** Thinking by tokens needs fewer tokens than the answer. */
function withBudget(body: JsonRecord, most: number): JsonRecord {
  const { thinking, ...rest } = body;
  if (!isRecord(thinking) || typeof thinking["budget_tokens"] !== "number" || thinking["budget_tokens"] < most) return body;
  const budget = Math.floor(most / 2);
  return budget < 1_024 ? rest : { ...rest, thinking: { ...thinking, budget_tokens: budget } };
}

/**
 * Servers that do not take the name of a forced tool get this tool alone, and must call one (lmstudio-ai/lmstudio-bug-tracker#670). Models that
 * cannot be forced while they think do not think (cloudwego/eino#994, deepseek-ai/DeepSeek-V3#1376).
 */
export function withToolChoice(protocol: ModelProtocol, body: JsonRecord, text: string): LighterRequest | undefined {
  const choice = body["tool_choice"];
  const isForced = choice === "required" || isRecord(choice);
  if (protocol !== "chat-completions" || !isForced || !/tool_choice|tool choice/.test(text)) return undefined;
  if (/thinking/.test(text)) {
    const off = /internalerror\.algo/.test(text) ? { enable_thinking: false } : { thinking: { type: "disabled" } };
    const { reasoning_effort: effort, ...rest } = body;
    return { body: { ...rest, ...off }, dropped: effort === undefined ? [] : ["reasoning_effort"] };
  }
  if (!isRecord(choice) || !/object|string|required/.test(text)) return undefined;
  return { body: withRequiredTool(body), dropped: [] };
}

/**
 * Many vendors know no schema of an answer: "This response_format type is unavailable now" (ItzCrazyKns/Vane#969, BerriAI/litellm#7580). The
 * model reads the schema then.
 */
export function withoutStrictAnswer(protocol: ModelProtocol, body: JsonRecord, text: string): LighterRequest | undefined {
  if (!/response_format|json_schema|output_config|output_format|structured output/.test(text)) return undefined;
  if (protocol === "messages") {
    const config = isRecord(body["output_config"]) ? body["output_config"] : {};
    const { format, ...others } = config;
    if (!isRecord(format)) return undefined;
    const { output_config: _config, system, ...rest } = body;
    const told = { type: "text", text: answerInstruction(format["schema"]) };
    const blocks = Array.isArray(system) ? (system as readonly unknown[]) : system ? [{ type: "text", text: system }] : [];
    const lighter = { ...rest, ...(Object.keys(others).length > 0 && { output_config: others }), system: [...blocks, told] };
    return { body: lighter, dropped: ["output_config.format"] };
  }
  const lighter = withAnswerInWords(body);
  return lighter && { body: lighter, dropped: ["response_format"] };
}
