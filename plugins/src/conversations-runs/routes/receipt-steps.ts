import * as v from "valibot";
import { agentErrors } from "../errors.ts";
import { RECEIPT_STEPS_NEWEST } from "../limits.ts";
import { receiptStep } from "../receipt-steps-contract.ts";
import { receiptStream } from "../runs/receipts.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { assertUser, ownRun } from "./runs.ts";

/** Shows the messages of a turn, as its receipt keeps them, to the user of the run. */
export function readReceiptSteps({ log, runtime: { runs } }: ConversationServices): ConversationHandlers["receiptSteps"] {
  return async ({ params: { id, receiptId }, who, signal }) => {
    assertUser(who, id);
    await ownRun(runs, who, id);
    for await (const read of log.read(receiptStream(id), { limit: RECEIPT_STEPS_NEWEST, backwards: true, signal })) {
      const found = read.damaged ? undefined : v.safeParse(stepped, read.entry);
      if (found?.success && found.output.receipt_id === receiptId) return found.output;
    }
    throw agentErrors.receipt_not_found();
  };
}

const stepped = v.object({ receipt_id: v.string(), steps: v.optional(v.array(receiptStep), []) });
