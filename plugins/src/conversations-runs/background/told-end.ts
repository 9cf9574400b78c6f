import type { ports } from "@portico/core";
import type { Receipt } from "../runs/receipts.ts";
import type { Run } from "../runs/runs.ts";

/** How a turn ended, for whoever waits for it: read from what was written down, so that it is the same in every process that tells it. */
export function toldEnd(runId: string, run: Run | undefined, receipt: Receipt | undefined): ports.BackgroundTurnEnd {
  const told = { runId, output: receipt?.output ?? "", ...(receipt?.failure && { failure: receipt.failure }) };
  switch (run?.status) {
    case "completed":
      // No other turn that completes is cut: an interrupted one leaves its run idle.
      return { ...told, status: "completed", ...(receipt?.outcome.status === "partial" && { reason: "max_turns" }) };
    case "idle":
      return { ...told, status: "interrupted", reason: run.interruption_reason };
    default:
      return { ...told, status: "failed", reason: run?.failure_reason ?? "error" };
  }
}
