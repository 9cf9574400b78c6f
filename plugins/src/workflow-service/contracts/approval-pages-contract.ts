import { defineContract, reply } from "@portico/core/contract";
import * as v from "valibot";
import { workflowEnvelope, workflowErrors } from "./errors.ts";
import { CALL_BYTES } from "./limits.ts";

const { invalid_request, body_too_large, unsupported_media_type } = workflowErrors;

/** Pages for people who decide a gate by a link (open points 14). The token in the path is the credential. */
export const approvalPagesContract = defineContract(
  {
    surface: "workflow",
    auth: "open",
    envelope: workflowEnvelope,
    faults: { invalid_request, body_too_large, unsupported_media_type },
    // Without a referrer, browsers send the form of the page with `Origin: null`.
    otherOrigins: "answered",
  },
  {
    approvalPage: {
      method: "GET",
      path: "/approve/:token",
      summary: "Show the question of a gate to the holder of its approval link; decides nothing",
      params: v.strictObject({ token: v.string() }),
      success: reply.bytes(),
    },
    approve: {
      method: "POST",
      path: "/approve/:token",
      summary: "Approve or reject at a gate with its approval link, once",
      params: v.strictObject({ token: v.string() }),
      accepts: ["application/x-www-form-urlencoded"],
      body: v.string(),
      bodyAs: "text",
      bodyLimit: CALL_BYTES,
      success: reply.bytes(),
    },
  },
);
