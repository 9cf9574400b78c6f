import type { ports } from "@portico/core";
import { approvalId } from "../approvals/approval.ts";
import type { TurnWaits } from "../approvals/turn-waits.ts";
import type { TurnLimits } from "../turns/turn-limits.ts";

/** Open approvals of one look: those that have waited longest. */
const MOST_APPROVALS = 1000;

/** What operators are told of: approvals that wait, and limits of the day of which a part is used. */
export function defineNotifiedStates(given: {
  readonly notifications: ports.Notifications;
  readonly waits: TurnWaits;
  readonly limits: TurnLimits;
  readonly clock: ports.Clock;
}): void {
  const { notifications, waits, limits, clock } = given;
  notifications.define({
    name: "approvals",
    kind: "decision.waiting",
    async look({ decisionMs }) {
      const { items } = await waits.open(undefined, MOST_APPROVALS, undefined);
      const due = items.filter(({ askedAt }) => askedAt <= clock.now() - decisionMs);
      return due.map(({ runId, callId, agentId, userId, tool, askedAt, expiresAt }) => ({
        id: approvalId(runId, callId),
        data: {
          ...{ service: "agent", decision: "approval", agentId, runId, callId, userId, toolId: tool.id },
          ...{ askedAt: toText(askedAt), expiresAt: toText(expiresAt) },
        },
        page: ["approvals"],
      }));
    },
  });
  notifications.define({
    name: "limits-of-the-day",
    kind: "limit.near",
    async look({ limitShare }) {
      const today = await limits.today();
      if (!today) return [];
      const { budgets, endsAt, currency } = today;
      const near = budgets.filter(({ used, most }) => used >= most * limitShare);
      return near.map(({ scope, id, limit, used, most }) => ({
        id: JSON.stringify([scope, id, limit, endsAt]),
        data: {
          ...{ scope, ...(id !== undefined && { id }), limit, used, most, endsAt: toText(endsAt) },
          ...(limit === "moneyPerDay" && currency !== undefined && { currency }),
        },
        page: ["measurements"],
        onceUntil: endsAt,
      }));
    },
  });
}

function toText(ms: number): string {
  return new Date(ms).toISOString();
}
