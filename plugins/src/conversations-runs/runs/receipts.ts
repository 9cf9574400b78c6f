import { JsonPieces, type ports } from "@portico/core";
import * as v from "valibot";
import { receipt } from "../contract.ts";
import { RECEIPTS_LIMIT, RECEIPTS_LIMIT_MAXIMUM, RECEIPTS_OFFSET_MAXIMUM } from "../limits.ts";
import { type Parameter, readOffset, readPositive } from "../pagination.ts";
import type { Run } from "./runs.ts";

/** One finished turn (specification 2.12). */
export type Receipt = v.InferOutput<typeof receipt>;

/** The stream of a run's receipts. */
export const receiptStream = (runId: string): string => `receipts/${runId}`;

/** All receipts of a run in the order in which they were written, without those that are damaged (specification 4.6). */
export function allReceipts(log: ports.EventLog, runId: string, signal: AbortSignal): JsonPieces {
  return new JsonPieces(
    (async function* () {
      yield `{"run_id":${JSON.stringify(runId)},"receipts":[`;
      let separator = "";
      for await (const entry of log.read(receiptStream(runId), { signal })) {
        const found = readReceipt(entry);
        if (!found) continue;
        yield separator + JSON.stringify(found);
        separator = ",";
      }
      yield "]}";
    })(),
  );
}

/** The newest receipt of a run. Undefined if the run has no receipt, or if the receipt is damaged. */
export async function lastReceipt(log: ports.EventLog, runId: string): Promise<Receipt | undefined> {
  for await (const entry of log.read(receiptStream(runId), { limit: 1, backwards: true })) return readReceipt(entry);
  return undefined;
}

/** One page of a run's receipts. Throws `invalid_pagination`. */
export function readReceiptPage(query: { readonly offset?: Parameter; readonly limit?: Parameter }) {
  const offset = Math.min(readOffset("offset", query.offset, 0), RECEIPTS_OFFSET_MAXIMUM);
  const limit = Math.min(readPositive("limit", query.limit, RECEIPTS_LIMIT), RECEIPTS_LIMIT_MAXIMUM);
  return async (log: ports.EventLog, runId: string, signal: AbortSignal): Promise<JsonPieces> => {
    const total = await log.count(receiptStream(runId));
    // 4.6: offset counts back from the newest receipt; within a page they stay in write order.
    const last = total - offset;
    const first = Math.max(last - limit, 0) + 1;
    const traversed = Math.max(last - first + 1, 0);
    // Records beyond the limit cannot be requested: the last page ends there.
    const hasMore = traversed > 0 && first > 1 && offset + limit <= RECEIPTS_OFFSET_MAXIMUM;
    const head = { run_id: runId, total, offset, limit, has_more: hasMore };
    // One receipt at a time: a hundred of the longest are more than should be held.
    return new JsonPieces(
      (async function* () {
        yield `${JSON.stringify(head).slice(0, -1)},"receipts":[`;
        let shown = 0;
        if (traversed > 0) {
          for await (const entry of log.read(receiptStream(runId), { from: first, limit: traversed, signal })) {
            const found = readReceipt(entry);
            if (found) yield (shown++ > 0 ? "," : "") + JSON.stringify(found);
          }
        }
        yield `],"skipped":${traversed - shown}}`;
      })(),
    );
  };
}

/** Undefined if it is damaged or not a receipt. */
function readReceipt(entry: ports.LogEntry): Receipt | undefined {
  if (entry.damaged) return undefined;
  const parsed = v.safeParse(receipt, entry.entry);
  return parsed.success ? parsed.output : undefined;
}

/** The end of a turn, for waiting callers. It is read from the stored records, so that every process reports the same. */
export function toldEnd(runId: string, run: Run | undefined, receipt: Receipt | undefined): ports.BackgroundTurnEnd {
  const { failure, output = "" } = receipt ?? {};
  const told = { runId, output, ...(failure && { failure }), ...(run?.usage && { usage: run.usage }) };
  switch (run?.status) {
    case "completed":
      return {
        ...told,
        status: "completed",
        ...(receipt?.interruption_reason !== undefined && { reason: receipt.interruption_reason }),
      };
    case "idle":
      return { ...told, status: "interrupted", reason: run.interruption_reason };
    default:
      return { ...told, status: "failed", reason: run?.failure_reason ?? "error" };
  }
}
