import type { ports } from "@portico/core";
import type { RunRecords } from "../runs/run-records.ts";

/** Waiting gates of one look. */
const MOST_GATES = 1000;

/** What operators are told of: gates that wait for a person. Reads the open runs. */
export function waitingGates({
  runs,
  clock,
}: {
  readonly runs: Pick<RunRecords, "active">;
  readonly clock: ports.Clock;
}): ports.NotificationSource {
  return {
    name: "gates",
    kind: "decision.waiting",
    async look({ decisionMs }, signal) {
      const before = new Date(clock.now() - decisionMs).toISOString();
      const found: ports.NotifiedState[] = [];
      for await (const page of runs.active()) {
        signal.throwIfAborted();
        for (const { runId, workflowId, name, gates = [] } of page) {
          const waiting = gates.filter(({ requestedAt }) => requestedAt <= before);
          found.push(
            ...waiting.map(({ nodeId, requestedAt, expiresAt }) => ({
              id: `${runId}/${nodeId}/${requestedAt}`,
              data: {
                ...{ service: "workflow", decision: "gate", workflowId, workflowName: name, runId, nodeId, askedAt: requestedAt },
                ...(expiresAt !== undefined && { expiresAt }),
              },
              page: ["approvals"],
            })),
          );
        }
        if (found.length >= MOST_GATES) break;
      }
      return found;
    },
  };
}
