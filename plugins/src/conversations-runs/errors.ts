import { defineErrors } from "@portico/core/contract";

/** Every error of this area (specification 7.6). */
export const agentErrors = defineErrors({
  unauthorized: { status: 401, message: "unauthorized" },
  origin_not_allowed: { status: 403, message: "origin_not_allowed" },

  invalid_pagination: { status: 400 },
  invalid_filter: { status: 400 },
  invalid_run_id: { status: 400, message: "Invalid run ID" },
  run_not_found: { status: 404 },
  run_state_not_found: { status: 404 },
  // 7.6: "the user's identity could not be resolved", in Chinese.
  user_unresolved: { status: 401, message: "无法解析用户身份" },

  invalid_request: { status: 400, message: "The request does not match its schema" },
  invalid_lookup: { status: 400, message: "client request lookup body does not match schema" },
  unknown_agent: { status: 400, message: "There is no such agent" },
  agent_mismatch: { status: 400, message: "The conversation belongs to another agent" },
  unknown_media: { status: 400, message: "There is no such media, or it is not yours to read" },
  unknown_file: { status: 400, message: "There is no such attachment of yours" },
  attachments_unavailable: { status: 400, message: "This instance takes no attachments" },
  owner_required: { status: 403, message: "Only the instance's owner may do this" },
  user_required: { status: 403, message: "Only a user can submit queries" },
  socket_identity_mismatch: { status: 403, message: "The realtime connection belongs to another identity" },
  conversation_not_found: { status: 404, message: "Conversation not found" },
  request_not_found: { status: 404, message: "There is no such submission of yours" },
  message_not_found: { status: 404, message: "The conversation has no such message among its newest" },
  wrong_message_kind: { status: 400, message: "Only a user's message can be replaced, and only an answer can be made again" },
  branch_not_found: { status: 404, message: "The conversation has no such branch" },
  turn_not_ended: { status: 409, message: "A turn of the conversation has not ended", details: { retryable: true } },
  too_many_branches: {
    status: 409,
    message: "The conversation cannot change its branch any more",
    details: { retryable: false },
  },
  session_not_found: { status: 404, message: "Session not found" },
  conversation_busy: {
    status: 409,
    message: "The conversation is being cleared",
    details: { busy: true, retryable: true },
  },
  CLIENT_REQUEST_BODY_MISMATCH: { status: 409, details: { retryable: false } },
  limit_reached: { status: 429, message: "A limit of the user, the agent or the instance is reached" },
  run_not_repeatable: { status: 409, message: "Only a background run that failed can be run again" },
  realtime_unavailable: { status: 503, message: "There is no such realtime connection" },
  arguments_invalid: { status: 400, message: "The arguments do not fit the tool's schema" },
  approval_not_found: { status: 404, message: "There is no such call, or it never waited for a decision" },
  approval_decided: { status: 409, message: "The call is decided already, or its turn has ended", details: { retryable: false } },
  consent_not_found: { status: 404, message: "There is no such consent" },
  registry_unavailable: { status: 503, message: "The admission could not be confirmed: look it up before submitting again" },
});
