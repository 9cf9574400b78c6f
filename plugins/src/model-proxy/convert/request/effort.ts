import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { dropUnknown, isAbsent, quoteName, readCount, readObject, readOptional, readString } from "./read-field.ts";

/** Effort that both protocols call by the same name. */
const SHARED_EFFORT: ReadonlySet<string> = new Set(["low", "medium", "high", "xhigh", "max"]);
/** What Messages takes a missing effort for. */
const MESSAGES_DEFAULT_EFFORT = "high";
/**
 * Budgets below these many tokens are low and medium effort; the rest is high, the highest that every reasoning model knows.
 */
const MEDIUM_FROM = 4_096;
const HIGH_FROM = 16_384;

const OUTPUT_CONFIG_FIELDS = new Set(["effort", "format"]);
const THINKING_FIELDS = new Set(["type", "budget_tokens"]);

/**
 * `thinking` and `output_config.effort` become `reasoning_effort`. A stated effort wins over a budget, `disabled` over both;
 * thinking that names neither has the effort that Messages documents as its default.
 */
export function effortToChat(body: JsonObject, chat: JsonObjectDraft, dropped: Dropped): void {
  const config = readOptional(body.output_config, "output_config", readObject);
  if (config) dropUnknown(config, OUTPUT_CONFIG_FIELDS, "output_config.", dropped);
  const effort = readOptional(config?.effort, "output_config.effort", readSharedEffort);
  const thinking = readOptional(body.thinking, "thinking", readObject);
  if (!thinking) {
    if (effort !== undefined) chat.reasoning_effort = effort;
    return;
  }
  // How thinking is shown (`display`) changes no thought.
  dropUnknown(thinking, THINKING_FIELDS, "thinking.", dropped);
  const type = readString(thinking.type, "thinking.type");
  if (type === "disabled") {
    chat.reasoning_effort = "none";
    if (effort !== undefined) dropped.add("output_config.effort");
  } else if (type === "enabled") {
    const budget = readCount(thinking.budget_tokens, "thinking.budget_tokens");
    chat.reasoning_effort = effort ?? effortOfBudget(budget);
    if (effort !== undefined) dropped.add("thinking.budget_tokens");
  } else if (type === "adaptive" || type === "between_tools") {
    chat.reasoning_effort = effort ?? MESSAGES_DEFAULT_EFFORT;
    if (type === "between_tools") dropped.add("thinking.type");
  } else {
    throw new ConversionRefused("thinking.type", `${quoteName(type)} has no counterpart here`);
  }
}

/**
 * `reasoning_effort` becomes adaptive thinking with that effort: current models of Messages refuse budgets, adaptive thinking
 * goes together with any `tool_choice`, and it doesn't demand that earlier turns begin with a thinking block, which callers
 * of Chat Completions rarely keep. `none` switches thinking off; `minimal` is the nearest that Messages has, `low`.
 * @returns whether the model is to think.
 */
export function effortToMessages(body: JsonObject, messages: JsonObjectDraft, outputConfig: JsonObjectDraft): boolean {
  const effort = body.reasoning_effort;
  if (isAbsent(effort)) return false;
  if (effort === "none") {
    messages.thinking = { type: "disabled" };
    return false;
  }
  messages.thinking = { type: "adaptive" };
  outputConfig.effort = effort === "minimal" ? "low" : readSharedEffort(effort, "reasoning_effort");
  return true;
}

function readSharedEffort(value: Json | undefined, path: string): string {
  if (typeof value !== "string" || !SHARED_EFFORT.has(value)) {
    throw new ConversionRefused(path, `${quoteName(value)} is no effort that both protocols know`);
  }
  return value;
}

function effortOfBudget(budget: number): string {
  if (budget < MEDIUM_FROM) return "low";
  return budget < HIGH_FROM ? "medium" : "high";
}
