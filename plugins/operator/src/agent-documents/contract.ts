import { defineContract, defineErrors, jsonObject, ownerErrors, readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";

/** Maximum size of the text of an `agent.json` in bytes of UTF-8. */
export const AGENT_TEXT_BYTES = 1024 * 1024;
/** Bytes of bodies with the text of an `agent.json`. JSON may write each byte of the text as two. */
const AGENT_BODY_BYTES = 2 * AGENT_TEXT_BYTES + 64 * 1024;

/** Errors of the calls about the texts of agents. */
export const agentDocumentErrors = {
  ...ownerErrors("Only the owner may see and change the texts of agents"),
  ...defineErrors({
    invalid_json: { status: 400, message: "The body is not JSON" },
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
  }),
};

const text = v.string();
const byId = v.strictObject({ id: v.pipe(text, v.regex(/^[A-Za-z0-9_-]{1,64}$/, "an agent's id")) });
const written = v.strictObject({
  text: v.pipe(
    text,
    v.check((each) => each.isWellFormed(), "well-formed text"),
  ),
});

const {
  unauthorized,
  owner_required,
  agent_document_not_found,
  agents_not_editable,
  agent_document_changed,
  agent_document_invalid,
  precondition_required,
  body_too_large,
  store_unavailable,
} = agentDocumentErrors;
const ofOwner = { unauthorized, owner_required, agents_not_editable };

const problem = v.object({
  /** Warnings concern keys that have no effect. A text with only warnings can be saved. */
  severity: v.picklist(["error", "warning"]),
  line: v.number(),
  column: v.number(),
  /** JSONPath of the wrong value. */
  path: text,
  message: text,
});
/** The errors and then the warnings: 100 at most. */
const problems = v.array(problem);

/** What a text can name. */
const choices = v.object({
  /** IDs of the agent engines. */
  engines: v.array(text),
  /** The tools of all sources that can be reached now. Tools of an MCP server are `server/tool`. */
  tools: v.array(
    v.object({
      id: text,
      name: text,
      description: text,
      riskLevel: v.picklist(["low", "medium", "high", "critical"]),
      requiresConfirmation: v.boolean(),
    }),
  ),
  /** Paths of the folders with a `SKILL.md`, below the agent's folder. */
  skills: v.array(text),
});

/** The texts of agents, for the instance's owner: an extension of the specification (open points 14). */
export const agentDocumentsContract = defineContract(
  {
    surface: "agent",
    auth: "owner",
    envelope: ({ code, message, details }) => ({ error: message, code, ...details }),
    faults: {
      invalid_json: agentDocumentErrors.invalid_json,
      body_too_large,
      unsupported_media_type: agentDocumentErrors.unsupported_media_type,
      origin_not_allowed: agentDocumentErrors.origin_not_allowed,
    },
  },
  {
    read: {
      method: "GET",
      path: "/api/agents/:id/document",
      summary: "Read the text of an agent's agent.json, with its ETag",
      query: readParameters({}),
      params: byId,
      success: reply.bytes(),
      errors: { ...ofOwner, agent_document_not_found, agent_document_changed, store_unavailable },
    },
    save: {
      method: "PUT",
      path: "/api/agents/:id/document",
      summary: "Create or replace an agent's agent.json, with If-Match or If-None-Match: *",
      params: byId,
      body: written,
      bodyLimit: AGENT_BODY_BYTES,
      success: reply.json(
        v.object({
          agentId: text,
          etag: text,
          created: v.boolean(),
          /** The keys that have no effect. */
          warnings: v.array(problem),
        }),
      ),
      errors: {
        ...ofOwner,
        ...{ agent_document_changed, agent_document_invalid, precondition_required, body_too_large, store_unavailable },
      },
    },
    remove: {
      method: "DELETE",
      path: "/api/agents/:id/document",
      summary: "Remove an agent's agent.json, with If-Match",
      params: byId,
      success: reply.json(v.object({ agentId: text, removed: v.literal(true) })),
      errors: { ...ofOwner, agent_document_not_found, agent_document_changed, precondition_required, store_unavailable },
    },
    check: {
      method: "POST",
      path: "/api/agents/:id/document/check",
      summary: "Check a text as an agent's agent.json, without saving it",
      params: byId,
      body: written,
      bodyLimit: AGENT_BODY_BYTES,
      success: reply.json(v.object({ problems })),
      errors: { ...ofOwner, body_too_large, store_unavailable },
    },
    choices: {
      method: "GET",
      path: "/api/agents/:id/document/choices",
      summary: "List the engines, tools and skills that an agent's agent.json can name",
      query: readParameters({}),
      params: byId,
      success: reply.json(choices),
      errors: { ...ofOwner, store_unavailable },
    },
    schema: {
      method: "GET",
      path: "/api/agent-schema",
      summary: "Read the JSON Schema of agent.json",
      query: readParameters({}),
      success: reply.json(jsonObject),
      errors: ofOwner,
    },
  },
);
