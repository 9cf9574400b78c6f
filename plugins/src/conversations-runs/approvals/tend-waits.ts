import type { AuditWriter, ports } from "@portico/core";
import { approvalId } from "./approval.ts";
import type { TurnWaits } from "./turn-waits.ts";

/** How often waiting turns are looked after. */
export const WAITS_TENDED: ports.ChoreOptions = { everyMs: 10_000, firstMs: 1000 };

/** A turn that is due for longer was decided by a process that died before it could say so. */
const TOLD_AFTER_MS = 5000;

/** Ends approvals that have expired, and lets turns go on that are due and were not told. */
export function createTendWaits(given: {
  readonly waits: TurnWaits;
  readonly audit: AuditWriter;
  readonly clock: ports.Clock;
}): (signal: AbortSignal) => Promise<void> {
  const { waits, audit, clock } = given;

  const expire = async (runId: string, callId: string, at: number): Promise<void> => {
    const fact = { action: "approval.expire", object: approvalId(runId, callId), who: { role: "instance" } } as const;
    const wait = await waits.decide(
      runId,
      callId,
      { decision: "expired", at },
      { commit: ({ writes }) => audit.record(fact, writes) },
    );
    if (wait && wait.isDue) await waits.wake(wait);
  };

  return async (signal) => {
    const now = clock.now();
    for await (const expired of waits.expired(now)) {
      for (const { runId, callId } of expired) {
        signal.throwIfAborted();
        await expire(runId, callId, now);
      }
    }
    for await (const due of waits.due(now - TOLD_AFTER_MS)) {
      for (const wait of due) {
        signal.throwIfAborted();
        await waits.wake(wait);
      }
    }
  };
}
