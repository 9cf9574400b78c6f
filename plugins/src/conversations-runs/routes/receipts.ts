import { agentErrors } from "../errors.ts";
import { allReceipts, readReceiptPage } from "../runs/receipts.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { isRunId, visibleRun } from "./visible-run.ts";

/** Lists the receipts of a run, or a page of them. */
export function readReceipts({ log, runtime: { runs } }: ConversationServices): ConversationHandlers["receipts"] {
  return async ({ params, query, who, signal }) => {
    if (!isRunId(params.id)) throw agentErrors.invalid_run_id();
    if (who.userId === undefined) throw agentErrors.user_unresolved();
    const page = query.offset === undefined && query.limit === undefined ? undefined : readReceiptPage(query);
    // 4.6: receipts are the user's own, also from an owner's eyes.
    const run = await visibleRun(runs, who, params.id);
    if (!run || run.user_id !== who.userId) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return page ? page(log, run.run_id, signal) : allReceipts(log, run.run_id, signal);
  };
}
