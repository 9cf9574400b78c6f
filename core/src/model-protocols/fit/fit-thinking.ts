import { isRecord } from "../../kit/json-object.ts";
import type { MessagesDialect } from "../../ports/models.ts";
import type { JsonRecord } from "./fitted-request.ts";

/** Tokens of thinking for an effort. `effortOfBudget` reads the same efforts from them. */
const BUDGETS: Readonly<Record<string, number>> = { low: 2_048, medium: 8_192, high: 16_384, xhigh: 32_000, max: 32_000 };
/** The default effort of Messages. */
const DEFAULT_EFFORT = "high";
/** The least that Messages accepts. */
const LEAST_BUDGET = 1_024;

/**
 * Writes thinking as the model takes it. Haiku 4.5, Sonnet 4.5 and most other servers of Messages refuse adaptive thinking and effort
 * (pensarai/apex#890, diegosouzapw/OmniRoute#1563): for them, an effort becomes a number of tokens, at most half of the answer's limit. Models
 * since Opus 4.7 refuse the number (handochan/aelix-ai#258): for them, it becomes an effort. Thinking is left out where the protocol does not
 * allow a number: with a forced tool, and after a call whose own thinking is missing.
 */
export function fitThinking(fitted: Record<string, unknown>, { thinking: form }: MessagesDialect, dropped: Set<string>): void {
  const { thinking } = fitted;
  if (form === "adaptive") return toAdaptive(fitted, thinking);
  const config = isRecord(fitted["output_config"]) ? fitted["output_config"] : undefined;
  const effort = config?.["effort"];
  if (config && effort !== undefined) {
    const { effort: _effort, ...rest } = config;
    if (Object.keys(rest).length > 0) fitted["output_config"] = rest;
    else delete fitted["output_config"];
  }
  const isAdaptive = isRecord(thinking) && thinking["type"] === "adaptive";
  if (!isAdaptive && !(form === "none" && thinking !== undefined)) {
    if (effort !== undefined) dropped.add("output_config.effort");
    return;
  }
  const budget = form === "budget" && mayThink(fitted) ? budgetOf(effort, fitted["max_tokens"]) : undefined;
  if (budget !== undefined) fitted["thinking"] = { type: "enabled", budget_tokens: budget };
  else {
    delete fitted["thinking"];
    dropped.add("thinking");
  }
}

function toAdaptive(fitted: Record<string, unknown>, thinking: unknown): void {
  if (!isRecord(thinking) || thinking["type"] !== "enabled" || typeof thinking["budget_tokens"] !== "number") return;
  const config = isRecord(fitted["output_config"]) ? fitted["output_config"] : {};
  fitted["thinking"] = { type: "adaptive" };
  fitted["output_config"] = { effort: effortOfBudget(thinking["budget_tokens"]), ...config };
}

/** The effort of a number of tokens: the nearest of those that all reasoning models have. */
export function effortOfBudget(budget: number): string {
  if (budget < BUDGETS["medium"]! / 2) return "low";
  return budget < BUDGETS["high"]! ? "medium" : "high";
}

/** Half of the limit is left for the answer. Undefined if the limit is too low to think. */
function budgetOf(effort: unknown, limit: unknown): number | undefined {
  const wanted = BUDGETS[typeof effort === "string" ? effort : DEFAULT_EFFORT] ?? BUDGETS[DEFAULT_EFFORT]!;
  const budget = Math.min(wanted, typeof limit === "number" ? Math.floor(limit / 2) : wanted);
  return budget >= LEAST_BUDGET ? budget : undefined;
}

/** With a number of tokens, Messages refuses a forced tool, and a call of the present turn that does not begin with its thinking. */
function mayThink({ tool_choice: choice, messages }: JsonRecord): boolean {
  if (isRecord(choice) && (choice["type"] === "tool" || choice["type"] === "any")) return false;
  if (!Array.isArray(messages)) return true;
  const from = messages.findLastIndex(
    (message) => isRecord(message) && message["role"] === "user" && !hasResult(message["content"]),
  );
  return messages
    .slice(from + 1)
    .every((message) => !isRecord(message) || message["role"] !== "assistant" || beginsWithThinking(message["content"]));
}

function hasResult(content: unknown): boolean {
  return Array.isArray(content) && content.some((block) => isRecord(block) && block["type"] === "tool_result");
}

function beginsWithThinking(content: unknown): boolean {
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  return isRecord(first) && (first["type"] === "thinking" || first["type"] === "redacted_thinking");
}
