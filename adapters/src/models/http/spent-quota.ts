import type { ports } from "@portico/core";

/** Codes of OpenAI for an account without money. Only exact codes count: other vendors name a limit of seconds a quota (LibreChat-AI/agents#358). */
const SPENT = new Set([
  "insufficient_quota",
  "credit_balance_exhausted",
  "organization_spend_limit_exceeded",
  "project_spend_limit_exceeded",
  "organization_usage_limit_exceeded",
]);

/** Larger bodies are no errors of this kind. */
const MOST_BYTES = 64 * 1024;

/**
 * Whether a whole answer of status 429 says that the account has no money left: no wait helps then (openai/codex#6340,
 * langchain-ai/langchainjs#1929).
 */
export function quotaIsSpent({ status, whole }: ports.ModelAnswer): boolean {
  if (status !== 429 || !whole || whole.length > MOST_BYTES) return false;
  try {
    const { error } = JSON.parse(whole.toString("utf8")) as {
      readonly error?: { readonly code?: unknown; readonly type?: unknown };
    };
    return [error?.code, error?.type].some((name) => typeof name === "string" && SPENT.has(name));
  } catch {
    return false;
  }
}
