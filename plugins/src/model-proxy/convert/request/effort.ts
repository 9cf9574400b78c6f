import type { ports } from "@portico/core";
import { ConversionRefused } from "../conversion-refused.ts";
import type { Dropped } from "../dropped.ts";
import type { Json, JsonObject, JsonObjectDraft } from "../json.ts";
import { dropUnknown, quoteName, readCount, readObject, readOptional, readString } from "./read-field.ts";

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
const REASONING_FIELDS = new Set(["effort"]);
const THINKING_FIELDS = new Set(["type", "budget_tokens"]);

/**
 * `thinking` and `output_config.effort` become `reasoning_effort`. A stated effort wins over a budget; thinking that names
 * neither has the effort that Messages documents as its default. `disabled` sends no effort at all: few models know an effort
 * that means none, and the others refuse the request. A provider that takes no effort is sent none.
 */
export function effortToChat(body: JsonObject, chat: JsonObjectDraft, { reasoning }: ports.ChatDialect, dropped: Dropped): void {
  const config = readOptional(body.output_config, "output_config", readObject);
  if (config) dropUnknown(config, OUTPUT_CONFIG_FIELDS, "output_config.", dropped);
  const effort = readOptional(config?.effort, "output_config.effort", readSharedEffort);
  const thinking = readOptional(body.thinking, "thinking", readObject);
  const asked = thinking ? effortOfThinking(thinking, effort, dropped) : effort;
  if (asked !== undefined && reasoning === "effort") {
    chat.reasoning_effort = asked;
    return;
  }
  if (thinking) dropped.add("thinking");
  if (effort !== undefined) dropped.add("output_config.effort");
}

/** Undefined where the model is not to think. */
function effortOfThinking(thinking: JsonObject, effort: string | undefined, dropped: Dropped): string | undefined {
  // How thinking is shown (`display`) changes no thought.
  dropUnknown(thinking, THINKING_FIELDS, "thinking.", dropped);
  const type = readString(thinking.type, "thinking.type");
  switch (type) {
    case "disabled":
      return undefined;
    case "enabled": {
      const budget = readCount(thinking.budget_tokens, "thinking.budget_tokens");
      if (effort !== undefined) dropped.add("thinking.budget_tokens");
      return effort ?? effortOfBudget(budget);
    }
    case "between_tools":
      dropped.add("thinking.type");
      return effort ?? MESSAGES_DEFAULT_EFFORT;
    case "adaptive":
      return effort ?? MESSAGES_DEFAULT_EFFORT;
    default:
      throw new ConversionRefused("thinking.type", `${quoteName(type)} has no counterpart here`);
  }
}

/**
 * `reasoning_effort`, or `reasoning.effort` as gateways spell it, becomes adaptive thinking with that effort: current models of Messages refuse budgets, adaptive thinking
 * goes together with any `tool_choice`, and it doesn't demand that earlier turns begin with a thinking block, which callers
 * of Chat Completions rarely keep. `none` switches thinking off; `minimal` is the nearest that Messages has, `low`.
 * @returns whether the model is to think.
 */
export function effortToMessages(
  body: JsonObject,
  messages: JsonObjectDraft,
  outputConfig: JsonObjectDraft,
  dropped: Dropped,
): boolean {
  const reasoning = readOptional(body.reasoning, "reasoning", readObject);
  if (reasoning) dropUnknown(reasoning, REASONING_FIELDS, "reasoning.", dropped);
  const stated = readOptional(body.reasoning_effort, "reasoning_effort", readChatEffort);
  const nested = readOptional(reasoning?.effort, "reasoning.effort", readChatEffort);
  if (stated !== undefined && nested !== undefined && nested !== stated) dropped.add("reasoning.effort");
  const effort = stated ?? nested;
  if (effort === undefined) return false;
  if (effort === "none") {
    messages.thinking = { type: "disabled" };
    return false;
  }
  messages.thinking = { type: "adaptive" };
  outputConfig.effort = effort;
  return true;
}

/** `minimal` as the nearest that Messages has. */
function readChatEffort(value: Json | undefined, path: string): string {
  if (value === "none") return value;
  return value === "minimal" ? "low" : readSharedEffort(value, path);
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
