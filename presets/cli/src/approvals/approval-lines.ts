import { printable, printableJson } from "../terminal/printable.ts";
import { shellWord } from "../terminal/shell-word.ts";
import type { Approval } from "./find-approvals.ts";

/** A call that waits, as text for a person. `more`: flags with which another command reaches the same service. */
export function approvalLines(approval: Approval, more: readonly string[]): string {
  const { runId, callId, agentId, userId, background, toolId, toolName, riskLevel, askedAt, expiresAt } = approval;
  const call = [shellWord(runId), shellWord(callId), ...more.map(shellWord)].join(" ");
  const facts: readonly (readonly [string, string])[] = [
    ["Agent", `${agentId}, for ${userId}${background ? ", in the background" : ""}`],
    ["Run", runId],
    ["Call", callId],
    ["Asked", `${askedAt}, until ${expiresAt}`],
    ["Arguments", printableJson(approval.arguments ?? null)],
  ];
  return [
    printable(`${toolName}${toolId === toolName ? "" : ` (${toolId})`}: ${riskLevel} risk`),
    ...facts.map(([name, value]) => `  ${`${name}:`.padEnd(10)} ${printable(value)}`),
    `  portico approvals approve ${printable(call)}`,
    `  portico approvals reject ${printable(call)}`,
  ].join("\n");
}
