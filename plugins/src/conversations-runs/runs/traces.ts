import type { ports } from "@portico/core";
import * as v from "valibot";
import { storedTrace } from "../turns/trace-entry.ts";
import { receiptStream } from "./receipts.ts";

/** The part of a receipt that its trace is shown with. */
const traced = v.object({
  receipt_id: v.string(),
  started_at: v.string(),
  completed_at: v.string(),
  outcome: v.object({ status: v.picklist(["success", "partial", "failed"]) }),
  trace: v.optional(storedTrace),
});

/** The traces of a run's newest turns, in the order in which the turns ended; `offset` counts back from the newest. */
export async function readTraces(
  log: ports.EventLog,
  runId: string,
  { offset, limit, signal }: { readonly offset: number; readonly limit: number; readonly signal: AbortSignal },
) {
  const total = await log.count(receiptStream(runId));
  const last = total - offset;
  const first = Math.max(last - limit, 0) + 1;
  const turns: (Omit<v.InferOutput<typeof traced>, "outcome"> & { readonly outcome: "success" | "partial" | "failed" })[] = [];
  if (last >= first) {
    for await (const entry of log.read(receiptStream(runId), { from: first, limit: last - first + 1, signal })) {
      const found = entry.damaged ? undefined : v.safeParse(traced, entry.entry);
      if (found?.success) turns.push({ ...found.output, outcome: found.output.outcome.status });
    }
  }
  return { run_id: runId, turns, total, offset, limit, has_more: last >= first && first > 1 };
}
