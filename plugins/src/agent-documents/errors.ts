import { defineErrors } from "@portico/core/contract";

/** Errors of the calls about the texts of agents. */
export const agentDocumentErrors = defineErrors({
  invalid_request: { status: 400, message: "The request does not match its schema" },
  invalid_json: { status: 400, message: "The body is not JSON" },
  unauthorized: { status: 401, message: "unauthorized" },
  owner_required: { status: 403, message: "Only the owner may see and change the texts of agents" },
  origin_not_allowed: { status: 403, message: "origin_not_allowed" },
  agent_document_not_found: { status: 404, message: "There is no agent.json of this agent" },
  agents_not_editable: {
    status: 409,
    message:
      "The agents of this instance cannot be edited here: agent.editable is off, or a program or a store that takes no writes defines them",
  },
  agent_document_changed: {
    status: 412,
    message: "The agent.json is not as the request names it: read it again",
  },
  body_too_large: { status: 413, message: "An agent.json has at most 1 MiB" },
  unsupported_media_type: { status: 415, message: "Send the body as application/json" },
  agent_document_invalid: { status: 422, message: "The text has errors" },
  precondition_required: {
    status: 428,
    message: "Send If-Match with the ETag of the text that you replace, or If-None-Match: *",
  },
  store_unavailable: { status: 503, message: "The store of the agents cannot be read or written" },
});
