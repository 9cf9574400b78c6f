import type { ports } from "@portico/core";

/**
 * The risk of a tool by its annotations (open points 3): `readOnlyHint` low, `destructiveHint` high, otherwise medium. A server
 * that is not trusted may only raise the risk: a tool that it declares harmless stays medium.
 */
export function riskOf(annotations: unknown, trusted: boolean): ports.RiskLevel {
  const { readOnlyHint, destructiveHint } = (annotations ?? {}) as { readOnlyHint?: unknown; destructiveHint?: unknown };
  // If a server contradicts itself, the higher risk counts.
  if (destructiveHint === true) return "high";
  return readOnlyHint === true && trusted ? "low" : "medium";
}

/** Whether a person must agree before a tool of this risk runs. */
export function needsConfirmation(risk: ports.RiskLevel): boolean {
  return risk === "high" || risk === "critical";
}
