import { defineContract, defineErrors, reply } from "@portico/core/contract";
import * as v from "valibot";
import { workflowEnvelope } from "./contracts/errors.ts";
import { GRANT_MS } from "./contracts/limits.ts";

const text = v.pipe(v.string(), v.nonEmpty());

/** Errors of the call that issues grants. */
export const executionGrantErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  invalid_workflow_id: { status: 400, message: "Not a valid workflow id: use up to 64 letters, digits, _ and -" },
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the instance's owner may issue execution grants" },
  workflow_not_found: { status: 404, message: "Workflow not found" },
  binding_not_found: { status: 404, message: "The workflow has no such binding" },
  signing_unavailable: { status: 503, message: "The instance cannot sign now" },
});

/** Execution grants for the instance's owner, on the agent service (open points 8). */
export const executionGrantContract = defineContract(
  {
    surface: "agent",
    auth: "owner",
    envelope: workflowEnvelope,
    faults: { invalid_request: executionGrantErrors.invalid_request },
  },
  {
    issue: {
      method: "POST",
      path: "/api/execution-grants",
      summary: "Issue an execution grant for one workflow; only this response contains it",
      body: v.strictObject({
        workflowId: text,
        userId: v.optional(text),
        bindingId: v.optional(text),
        /** A grant to test and write the definition, and nothing else. The workflow need not be deployed yet. */
        edits: v.optional(v.literal(true)),
        ttlMs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(GRANT_MS.least), v.maxValue(GRANT_MS.most))),
      }),
      success: reply.json(v.object({ executionGrantId: v.string(), workflowId: v.string(), expiresAt: v.string() }), 201),
      errors: executionGrantErrors,
    },
  },
);
