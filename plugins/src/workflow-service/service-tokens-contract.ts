import { defineContract, defineErrors, reply } from "@portico/core/contract";
import * as v from "valibot";
import { workflowEnvelope } from "./contracts/errors.ts";

/** Errors of the call that issues short-lived tokens. */
export const serviceTokenErrors = defineErrors({
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the instance's owner may issue tokens of the workflow service" },
  signing_unavailable: { status: 503, message: "The instance cannot sign now" },
});

/** Tokens of the workflow service for the instance's owner, on the agent service. */
export const serviceTokenContract = defineContract(
  { surface: "agent", auth: "owner", envelope: workflowEnvelope },
  {
    issue: {
      method: "POST",
      path: "/api/service-tokens",
      summary: "Issue a token of the workflow service that is valid for some minutes, for the header X-Workflow-Service-Token",
      success: reply.json(v.object({ token: v.string(), expiresAt: v.string() }), 201),
      errors: serviceTokenErrors,
    },
  },
);
