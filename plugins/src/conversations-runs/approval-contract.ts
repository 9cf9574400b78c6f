import { jsonObject, maxCharacters, readParameters, reply } from "@portico/core/contract";
import * as v from "valibot";
import { agentErrors } from "./errors.ts";
import { APPROVAL_COMMENT_CHARACTERS } from "./limits.ts";

const text = v.string();
const optionalText = v.optional(text);
/** One parameter as it came; twice is a list, and for the pagination to refuse. */
const parameter = v.optional(v.union([text, v.array(text)]));
const { unauthorized, invalid_pagination, invalid_request } = agentErrors;

/** A call of a tool that waits for a person's decision. */
const approval = v.object({
  runId: text,
  /** Names the call in its run. */
  callId: text,
  agentId: text,
  userId: text,
  sessionId: text,
  conversationId: optionalText,
  clientRequestId: optionalText,
  /** The turn is a background turn. */
  background: v.optional(v.literal(true)),
  toolId: text,
  toolName: text,
  description: text,
  riskLevel: v.picklist(["low", "medium", "high", "critical"]),
  /** What the model called it with. A text instead if they are too long to be shown. */
  arguments: v.unknown(),
  /** ISO 8601. */
  askedAt: text,
  expiresAt: text,
});

const decision = v.pipe(
  v.strictObject({
    decision: v.picklist(["approve", "reject"]),
    /** In place of the model's arguments. They must fit the tool's schema. */
    arguments: v.optional(jsonObject),
    /** The model reads it. */
    comment: v.optional(
      v.pipe(
        text,
        maxCharacters(APPROVAL_COMMENT_CHARACTERS),
        v.check((comment) => comment.isWellFormed(), "well-formed text"),
      ),
    ),
    /** Approve all calls of this tool, as it is now, that this agent makes for the run's user. */
    standing: v.optional(v.boolean()),
  }),
  v.check(
    ({ decision: decided, arguments: args, standing }) =>
      decided === "approve" ? !(args && standing) : args === undefined && !standing,
    "arguments or standing, and only to approve",
  ),
);

/** Decisions about calls of tools (open points 14): extensions of the specification. */
export const approvalRoutes = {
  approvals: {
    method: "GET",
    path: "/api/approvals",
    summary: "List calls of tools that wait for a decision, the oldest first",
    query: readParameters({ limit: parameter, after: parameter }),
    success: reply.json(v.object({ approvals: v.array(approval), next: optionalText })),
    errors: { unauthorized, invalid_pagination, invalid_filter: agentErrors.invalid_filter },
  },
  approvalChanges: {
    method: "GET",
    path: "/api/approvals/events",
    summary:
      "Follow which calls wait: the number now, unless the `Last-Event-ID` is that of the present list, and after each change",
    query: readParameters({}),
    success: reply.events({
      /** The first 200 calls that wait for this caller. Read the list to see them. */
      "approvals:changed": v.object({ waiting: v.number(), hasMore: v.boolean() }),
    }),
    errors: { unauthorized, too_many_readers: agentErrors.too_many_readers },
  },
  decideApproval: {
    method: "POST",
    path: "/api/runs/:id/approvals/:callId",
    summary: "Approve or reject a call of a tool",
    params: v.strictObject({ id: text, callId: text }),
    body: decision,
    success: reply.json(v.object({ runId: text, callId: text, decision: v.picklist(["approve", "reject"]), decidedAt: text })),
    errors: {
      unauthorized,
      invalid_request,
      arguments_invalid: agentErrors.arguments_invalid,
      approval_not_found: agentErrors.approval_not_found,
      approval_decided: agentErrors.approval_decided,
    },
  },
  consents: {
    method: "GET",
    path: "/api/tool-consents",
    summary: "List standing consents to tools",
    query: readParameters({}),
    success: reply.json(
      v.object({
        consents: v.array(v.object({ id: text, userId: text, agentId: text, toolId: text, grantedAt: text })),
      }),
    ),
    errors: { unauthorized },
  },
  revokeConsent: {
    method: "DELETE",
    path: "/api/tool-consents/:id",
    summary: "Revoke a standing consent to a tool",
    params: v.strictObject({ id: text }),
    success: reply.empty(),
    errors: { unauthorized, consent_not_found: agentErrors.consent_not_found },
  },
} as const;
