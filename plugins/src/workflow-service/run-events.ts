import type { EventOf } from "@portico/core";
import type { workflowServiceContract } from "./contract.ts";
import type { LedgerEntry } from "./runs/ledger-entry.ts";

/** One event of a run as it is sent (specification 6.1). */
export type RunEvent = EventOf<(typeof workflowServiceContract)["events"]["success"]["events"]>;

/** The event of a ledger entry. Skipped and cancelled nodes have no events. */
export function toRunEvent(runId: string, entry: LedgerEntry): RunEvent | undefined {
  const { nodeId } = entry;
  switch (entry.kind) {
    case "start": {
      const { type, name } = entry;
      return { event: "workflow:node_start", data: { runId, nodeId, type, ...(name !== undefined && { name }) } };
    }
    case "gate": {
      const { kind: _kind, ...gate } = entry;
      return { event: "workflow:human_gate", data: { runId, ...gate } };
    }
    case "notified": {
      const { kind: _kind, ...notified } = entry;
      return { event: "workflow:gate_notification", data: { runId, ...notified } };
    }
    case "end": {
      const { inputs, outputs, durationMs = 0, error } = entry;
      if (entry.status === "completed")
        return { event: "workflow:node_complete", data: { runId, nodeId, inputs, outputs, durationMs } };
      return (
        error && { event: "workflow:node_error", data: { runId, nodeId, error: { code: error.code, message: error.message } } }
      );
    }
  }
}
