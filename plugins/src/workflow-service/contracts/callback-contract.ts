import { defineContract, reply } from "@portico/core/contract";
import * as v from "valibot";
import { workflowEnvelope, workflowErrors } from "./errors.ts";
import { CALL_BYTES } from "./limits.ts";

const { invalid_request, invalid_json, body_too_large, unsupported_media_type, origin_not_allowed } = workflowErrors;
const { invalid_callback, callback_not_found, callback_used, callback_ended, store_unavailable, workflow_owner_fenced } =
  workflowErrors;

/** The address of a `callback` node (an extension). The token in the path is the credential. */
export const callbackContract = defineContract(
  {
    surface: "workflow",
    auth: "open",
    envelope: workflowEnvelope,
    faults: { invalid_request, invalid_json, body_too_large, unsupported_media_type, origin_not_allowed },
  },
  {
    receiveCallback: {
      method: "POST",
      path: "/callback/:token",
      summary: "Give a waiting callback its event, once",
      params: v.strictObject({ token: v.string() }),
      body: v.unknown(),
      bodyAs: "text",
      bodyLimit: CALL_BYTES,
      success: reply.json(v.object({ accepted: v.literal(true) })),
      errors: { invalid_callback, callback_not_found, callback_used, callback_ended, store_unavailable, workflow_owner_fenced },
    },
  },
);
