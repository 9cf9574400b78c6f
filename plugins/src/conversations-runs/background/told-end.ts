import type { ports } from "@portico/core";
import type { Receipt } from "../runs/receipts.ts";
import type { Run } from "../runs/runs.ts";

/** The end of a turn, for waiting callers. It is read from the stored records, so that every process reports the same. */
export function toldEnd(runId: string, run: Run | undefined, receipt: Receipt | undefined): ports.BackgroundTurnEnd {
  const { failure, output = "" } = receipt ?? {};
  const told = { runId, output, ...(failure && { failure }), ...(run?.usage && { usage: run.usage }) };
  switch (run?.status) {
    case "completed":
      return { ...told, status: "completed", ...endingOf(receipt) };
    case "idle":
      return { ...told, status: "interrupted", reason: run.interruption_reason };
    default:
      return { ...told, status: "failed", reason: run?.failure_reason ?? "error" };
  }
}

/** Old receipts, which have no named endings, only say that the turn was cut. Such a turn reached its limit of model calls. */
function endingOf(receipt: Receipt | undefined): { readonly reason?: string } {
  const reason = receipt?.interruption_reason ?? (receipt?.outcome.status === "partial" ? "max_turns" : undefined);
  return reason === undefined ? {} : { reason };
}
