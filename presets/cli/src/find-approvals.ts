import type { CallResult } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { findAgentService } from "./running-agent-service.ts";
import { printable, printableJson, shellWord } from "./terminal.ts";

const PAGE = "50";

type Routes = typeof conversationsRunsContract;
type Approval = CallResult<Routes["approvals"]>["approvals"][number];
type Consent = CallResult<Routes["consents"]>["consents"][number];

/** Which call is decided, and how. */
interface ApprovalDecision {
  readonly runId: string;
  readonly callId: string;
  readonly decision: "approve" | "reject";
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
  readonly comment?: string | undefined;
  readonly standing?: boolean | undefined;
}

/**
 * The approvals of the agent service that uses the data directory, or of the service at another address, called with the instance access
 * token. The functions throw CommandFailed: 1 with the service's own message if it refuses, 69 if it cannot be reached.
 */
export async function findApprovals(settings: PlatformSettings, given: string | undefined) {
  const { client, answered } = await findAgentService(settings, conversationsRunsContract, given);
  return {
    /** The calls that wait for a decision, the oldest first. */
    waiting: (): Promise<readonly Approval[]> =>
      answered(async (signal) => {
        const found: Approval[] = [];
        let after: string | undefined;
        do {
          const page = await client.approvals({ query: { limit: PAGE, ...(after !== undefined && { after }) }, signal });
          found.push(...page.approvals);
          after = page.next;
        } while (after !== undefined);
        return found;
      }),
    decide: ({ runId, callId, ...body }: ApprovalDecision) =>
      answered((signal) => client.decideApproval({ params: { id: segment(runId), callId: segment(callId) }, body, signal })),
    consents: (): Promise<readonly Consent[]> => answered(async (signal) => (await client.consents({ signal })).consents),
    revoke: (id: string) => answered((signal) => client.revokeConsent({ params: { id: segment(id) }, signal })),
  };
}

/** An ID that may be in a path. Throws CommandFailed (64) for `.` and `..`. */
function segment(id: string): string {
  if (id === "." || id === "..") throw new CommandFailed(`"${id}" is not an ID`, EXIT.usage);
  return id;
}

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
