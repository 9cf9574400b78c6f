import { readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";
import { agentErrors } from "./errors.ts";

const text = v.string();
const optionalText = v.optional(text);

/** One message of a turn, as its receipt keeps it. */
export const receiptStep = v.object({
  /** `answer`: of a model. `result`: of a tool. `message`: what the user said while the turn went on. */
  kind: v.picklist(["answer", "result", "message"]),
  /** The call of a tool that a result belongs to. */
  call_id: optionalText,
  /** Absent without words, and if the turn had too many. Credentials of usual forms are masked in it. */
  text: optionalText,
  /** The IDs of the calls of tools in an answer. */
  calls: v.optional(v.array(text)),
  is_error: v.optional(v.literal(true)),
});

/** The messages of a turn: an extension of the specification. */
export const receiptStepRoutes = {
  receiptSteps: {
    method: "GET",
    path: "/api/runs/:id/receipt/:receiptId/steps",
    summary: "Read what the model of a turn answered and its tools returned; for the user of the run",
    params: v.strictObject({ id: text, receiptId: text }),
    query: readParameters({}),
    success: reply.json(v.object({ receipt_id: text, steps: v.array(receiptStep) })),
    errors: {
      unauthorized: agentErrors.unauthorized,
      invalid_run_id: agentErrors.invalid_run_id,
      user_unresolved: agentErrors.user_unresolved,
      run_not_found: agentErrors.run_not_found,
      receipt_not_found: agentErrors.receipt_not_found,
    },
  },
} as const;
