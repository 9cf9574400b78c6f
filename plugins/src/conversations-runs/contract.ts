// One file: the calls of the area, with each path, shape and error, as a client sees them.
import { defineContract, maxCharacters, modelUsage, objectOnly, readParameters, record, reply } from "@portico/core/contract";
import * as v from "valibot";
import { approvalRoutes } from "./approval-contract.ts";
import { budgetRoutes } from "./budget-contract.ts";
import { turnEvents } from "./channel.ts";
import { agentEnvelope } from "./envelope.ts";
import { agentErrors } from "./errors.ts";
import { QUERY_BYTES, TITLE_LENGTH } from "./limits.ts";
import { memoryRoutes } from "./memory-contract.ts";
import { receiptStepRoutes } from "./receipt-steps-contract.ts";
import { OUTCOMES, runCountRoutes, runFilters } from "./run-counts-contract.ts";
import { storedTrace } from "./trace-entry.ts";
import {
  askBody,
  askResult,
  fillPromptBody,
  followUpBody,
  lookupBody,
  lookupResult,
  startBody,
  steerBody,
  steerResult,
} from "./query-contract.ts";

const text = v.string();
const optionalText = v.optional(text);
/** One parameter as it came; twice is a list, and for the pagination to refuse. */
const parameter = v.optional(v.union([text, v.array(text)]));
const byId = v.strictObject({ id: text });

/** Specification 2.10. */
const agentSummary = v.object({
  id: text,
  name: text,
  description: optionalText,
  engine: optionalText,
  skillsCount: v.number(),
  toolsCount: v.number(),
  heartbeatEnabled: v.boolean(),
  hasGit: v.boolean(),
  hasRemote: v.optional(v.boolean()),
  syncStatus: optionalText,
  isCoreAgent: v.boolean(),
  status: v.optional(v.picklist(["online", "busy", "idle", "offline", "error", "recovery", "shutdown"])),
  metadataError: v.optional(v.picklist(["missing", "unreadable", "invalid_json", "invalid_shape"])),
  /** What its turns need and the instance does not have: they fail until then. An extension. */
  missing: v.optional(v.picklist(["engine", "provider", "model"])),
  /** What its `agent.json` names and its turns do not get, for the owner: for example unknown tools, and skills that cannot be read. An extension. */
  problems: v.optional(
    v.array(
      v.object({
        at: v.picklist(["tools", "skills", "resources", "prompts", "outputSchema", "document"]),
        name: text,
        message: text,
      }),
    ),
  ),
  /** Keys of its `agent.json` that have no effect. */
  unknownKeys: v.optional(v.array(text)),
  ui: v.optional(v.unknown()),
  avatar: v.optional(v.unknown()),
});

/** Templates of messages that an agent's users may choose: an extension. */
const agentPrompts = v.object({
  prompts: v.array(
    v.object({
      id: text,
      title: optionalText,
      description: optionalText,
      arguments: v.array(v.object({ name: text, description: optionalText, isRequired: v.boolean() })),
    }),
  ),
  /** The agent has more than the list. */
  hasMore: v.boolean(),
  /** Sources whose prompts cannot be listed now. `connect_again`: the caller, or the owner, must connect an account first. */
  unavailable: v.array(v.object({ sourceId: text, code: v.picklist(["connect_again", "unavailable"]) })),
});

/** Specification 2.11. */
export const runMetadata = v.object({
  run_id: text,
  user_id: text,
  agent_id: text,
  started_at: text,
  status: v.picklist(["running", "idle", "completed", "failed"]),
  conversation_id: optionalText,
  session_id: optionalText,
  turn_started_at: optionalText,
  completed_at: optionalText,
  updatedAt: optionalText,
  failure_reason: optionalText,
  /** Why its last turn failed, in words for its user: the beginning of the text in the receipt. `provider`: of the model call that failed. */
  failure: v.optional(v.object({ code: text, message: text, provider: optionalText })),
  interruption_reason: optionalText,
  /** Why its last turn completed, if not by its agent's decision, and when its last turn ended: extensions. */
  completion_reason: optionalText,
  turn_ended_at: optionalText,
  interrupted_at: optionalText,
  delegation: v.optional(
    v.object({ fromAgentId: text, parentRunId: optionalText, parentClientRequestId: optionalText, mode: optionalText }),
  ),
  background: v.optional(v.boolean()),
  inbound: v.optional(v.object({ origin: text, displayName: text })),
  /** The calls of tools that wait for a person's decision. */
  approvals: v.optional(v.array(v.object({ call_id: text, tool_id: text, risk_level: text, asked_at: text, expires_at: text }))),
  title: optionalText,
  messageCount: v.optional(v.number()),
  /** How long its ended turns took, and what their model calls used: extensions. Fields of `usage` that are not known are absent. */
  duration_ms: v.optional(v.number()),
  usage: v.optional(modelUsage),
  archived_at: optionalText,
  /** Attempts of a background turn, if there was more than one: an extension, as the following ones. */
  attempts: v.optional(v.number()),
  /** When a background turn begins again whose model's provider was away. */
  retry_at: optionalText,
  /** The failed run that this one runs again, and the run that runs this one again. */
  again_of: optionalText,
  again_run_id: optionalText,
  cleared: v.optional(v.boolean()),
});

/** A run as it is shown, with how its last turn ended or what it does now: an extension. */
const shownRun = v.object({ ...runMetadata.entries, outcome: v.picklist(OUTCOMES) });

/** Specification 2.12. */
export const receipt = v.object({
  receipt_id: text,
  run_id: text,
  goal: text,
  input: text,
  output: text,
  tool_calls: v.array(v.unknown()),
  outcome: v.object({ status: v.picklist(["success", "partial", "failed"]), auto_completed: v.boolean() }),
  started_at: text,
  completed_at: text,
  usage: v.optional(v.unknown()),
  duration_ms: v.optional(v.number()),
  interruption_reason: optionalText,
  /** Why it failed, in words for its user. */
  failure: v.optional(v.object({ code: text, message: text })),
  /** The request of the turn, as its messages in the conversation name it: an extension. Absent for background turns. */
  client_request_id: optionalText,
});

const conversation = v.object({
  conversationId: text,
  userId: text,
  agentId: text,
  createdAt: text,
  updatedAt: text,
  sessionId: optionalText,
});

const conversationMessage = v.object({
  sequence: v.number(),
  id: text,
  role: v.picklist(["user", "assistant", "tool"]),
  parts: v.array(v.unknown()),
  at: text,
  clientRequestId: optionalText,
  /** A user's message to a turn that went on (an extension). */
  steers: v.optional(v.literal(true)),
  metadata: v.optional(record(text, text)),
});

/** A message of the shown branch, if other messages could stand in its place: an extension. */
const messageSiblings = v.object({
  messageId: text,
  sequence: v.number(),
  /** Which of the messages is shown, from 1. */
  position: v.number(),
  /** For each of the messages, in the order in which they were written, a branch that has it. */
  branches: v.array(v.number()),
});

/** A turn that executes now or waits for a person: an extension. */
const runningTurn = v.object({
  runId: text,
  sessionId: text,
  agentId: text,
  userId: text,
  clientRequestId: text,
  userMessageId: text,
  startedAt: text,
  /** No process executes it until a person has decided its approvals. */
  isWaiting: v.boolean(),
  begunBy: v.variant("kind", [
    v.object({ kind: v.literal("client") }),
    /** Another agent delegated it. */
    v.object({ kind: v.literal("agent"), agentId: text, runId: optionalText }),
  ]),
  /** What its user said to it while it goes on, oldest first. Its messages of the type `steering` name those that the agent was told. */
  steering: v.array(v.object({ messageId: text, text })),
  /** The user's message, as in the conversation. */
  message: conversationMessage,
});

const { unauthorized, invalid_pagination, invalid_filter, invalid_request, run_not_found, conversation_not_found } = agentErrors;
/** The errors of both kinds of submission. */
const submissionErrors = {
  unauthorized,
  user_required: agentErrors.user_required,
  socket_identity_mismatch: agentErrors.socket_identity_mismatch,
  conversation_busy: agentErrors.conversation_busy,
  CLIENT_REQUEST_BODY_MISMATCH: agentErrors.CLIENT_REQUEST_BODY_MISMATCH,
  limit_reached: agentErrors.limit_reached,
  realtime_unavailable: agentErrors.realtime_unavailable,
  registry_unavailable: agentErrors.registry_unavailable,
};

/** Of submissions that name an agent and files. */
const startErrors = {
  ...submissionErrors,
  unknown_agent: agentErrors.unknown_agent,
  agent_mismatch: agentErrors.agent_mismatch,
  attachments_unavailable: agentErrors.attachments_unavailable,
  unknown_media: agentErrors.unknown_media,
  unknown_file: agentErrors.unknown_file,
  conversation_not_found: agentErrors.conversation_not_found,
  // Of queries that begin a branch.
  message_not_found: agentErrors.message_not_found,
  wrong_message_kind: agentErrors.wrong_message_kind,
  turn_not_ended: agentErrors.turn_not_ended,
  too_many_branches: agentErrors.too_many_branches,
};

/** Agents, runs, queries and conversations (specification 4.6, open points 4 and 7). */
export const conversationsRunsContract = defineContract(
  {
    surface: "agent",
    auth: "instance",
    envelope: agentEnvelope,
    faults: { invalid_request, origin_not_allowed: agentErrors.origin_not_allowed },
  },
  {
    handshake: {
      method: "GET",
      path: "/api/handshake",
      summary: "Read the service's identity and capabilities",
      success: reply.json(
        v.object({
          protocolVersion: v.literal(1),
          serverInstanceId: text,
          version: text,
          identity: v.object({ userId: optionalText, role: v.picklist(["owner", "member", "service"]) }),
          // Areas that the specification does not know may tell words of their own.
          capabilities: v.objectWithRest(
            {
              webhookManagement: v.boolean(),
              media: v.boolean(),
              attachments: v.boolean(),
              realtime: v.boolean(),
              safeTokens: v.boolean(),
            },
            v.boolean(),
          ),
        }),
      ),
      errors: { unauthorized },
    },
    agents: {
      method: "GET",
      path: "/api/agents",
      summary: "List agents",
      success: reply.json(v.object({ agents: v.array(agentSummary) })),
      errors: { unauthorized },
    },
    prompts: {
      method: "GET",
      path: "/api/agents/:id/prompts",
      summary: "List the prompts of MCP servers that an agent's users may choose",
      params: byId,
      query: readParameters({}),
      success: reply.json(agentPrompts),
      errors: { unauthorized, unknown_agent: agentErrors.unknown_agent },
    },
    fillPrompt: {
      method: "POST",
      path: "/api/agents/:id/prompts/fill",
      summary: "Fill in a prompt of an MCP server, for a person to change and send",
      params: byId,
      body: fillPromptBody,
      success: reply.json(v.object({ text, leftOut: v.number() })),
      errors: {
        unauthorized,
        unknown_agent: agentErrors.unknown_agent,
        arguments_invalid: agentErrors.arguments_invalid,
        prompt_not_found: agentErrors.prompt_not_found,
        prompt_refused: agentErrors.prompt_refused,
        connect_again: agentErrors.connect_again,
        source_unavailable: agentErrors.source_unavailable,
      },
    },
    runs: {
      method: "GET",
      path: "/api/runs",
      summary: "List runs, newest first",
      query: v.object({ limit: parameter, agent_id: parameter, delegated_by: parameter, parent_run_id: parameter }),
      success: reply.json(v.object({ runs: v.array(shownRun) })),
      errors: { unauthorized, invalid_pagination, invalid_filter },
    },
    searchRuns: {
      method: "GET",
      path: "/api/runs/search",
      summary: "Find runs by words, status, outcome, reason, time, kind, agent, user and origin, newest first",
      query: readParameters({ ...runFilters, limit: parameter, after: parameter, before: parameter }),
      success: reply.json(
        v.object({
          runs: v.array(shownRun),
          /** The `after` of the next page. A page may have fewer runs than its limit, even 0, although there is a next page. */
          next: optionalText,
          /** The `before` of the page with newer runs. Absent on a page that begins with the newest. */
          previous: optionalText,
        }),
      ),
      errors: { unauthorized, invalid_pagination, invalid_filter },
    },
    ...runCountRoutes,
    run: {
      method: "GET",
      path: "/api/runs/:id",
      summary: "Read one run",
      params: byId,
      success: reply.json(shownRun),
      errors: { unauthorized, run_not_found },
    },
    changeRun: {
      method: "PATCH",
      path: "/api/runs/:id",
      summary: "Rename or archive a run",
      params: byId,
      body: objectOnly(
        v.strictObject({
          title: v.optional(
            v.pipe(
              text,
              maxCharacters(TITLE_LENGTH),
              v.check((title) => title.isWellFormed(), "well-formed text"),
            ),
          ),
          archived: v.optional(v.boolean()),
        }),
      ),
      success: reply.json(shownRun),
      errors: { unauthorized, run_not_found, invalid_request },
    },
    runAgain: {
      method: "POST",
      path: "/api/runs/:id/again",
      summary: "Run a failed background run again, in a new run; for the owner",
      params: byId,
      success: reply.json(v.object({ runId: text }), 202),
      errors: {
        unauthorized,
        owner_required: agentErrors.owner_required,
        run_not_found,
        run_not_repeatable: agentErrors.run_not_repeatable,
      },
    },
    runtimeState: {
      method: "GET",
      path: "/api/runs/:id/runtime-state",
      summary: "Read whether a run is executing now",
      params: byId,
      success: reply.json(v.strictObject({ run_id: text, agent_id: text, status: runMetadata.entries.status })),
      errors: { unauthorized, invalid_run_id: agentErrors.invalid_run_id, run_state_not_found: agentErrors.run_state_not_found },
    },
    receipts: {
      method: "GET",
      path: "/api/runs/:id/receipt",
      summary: "Read the receipts of a run's turns",
      params: byId,
      query: v.object({ offset: parameter, limit: parameter }),
      success: reply.json(
        v.object({
          run_id: text,
          receipts: v.array(receipt),
          total: v.optional(v.number()),
          offset: v.optional(v.number()),
          limit: v.optional(v.number()),
          has_more: v.optional(v.boolean()),
          skipped: v.optional(v.number()),
        }),
      ),
      errors: {
        unauthorized,
        invalid_pagination,
        run_not_found,
        invalid_run_id: agentErrors.invalid_run_id,
        user_unresolved: agentErrors.user_unresolved,
      },
    },
    trace: {
      method: "GET",
      path: "/api/runs/:id/trace",
      summary: "Read how the newest turns of a run spent their time",
      params: byId,
      query: readParameters({ offset: parameter, limit: parameter }),
      success: reply.json(
        v.object({
          run_id: text,
          turns: v.array(
            v.object({
              receipt_id: text,
              started_at: text,
              completed_at: text,
              outcome: v.picklist(["success", "partial", "failed"]),
              /** Absent for turns whose process died. */
              trace: v.optional(storedTrace),
            }),
          ),
          total: v.number(),
          offset: v.number(),
          limit: v.number(),
          has_more: v.boolean(),
        }),
      ),
      errors: { unauthorized, invalid_pagination, run_not_found },
    },
    ...receiptStepRoutes,
    ...approvalRoutes,
    ...memoryRoutes,
    start: {
      method: "POST",
      path: "/api/query/start",
      summary: "Submit a query to an agent",
      bodyLimit: QUERY_BYTES,
      body: startBody,
      success: reply.json(v.object({ ok: v.literal(true), clientRequestId: text, duplicate: v.optional(v.boolean()) }), 202),
      errors: startErrors,
    },
    ask: {
      method: "POST",
      path: "/api/agents/:id/ask",
      summary: "Ask an agent, and wait for its answer if `Prefer: wait` says so",
      params: byId,
      bodyLimit: QUERY_BYTES,
      body: askBody,
      waits: true,
      success: reply.json(askResult),
      errors: startErrors,
    },
    events: {
      method: "GET",
      path: "/api/query/client-requests/:clientRequestId/events",
      summary: "Follow the turn of a submission, from its first event or after the `Last-Event-ID`",
      params: v.strictObject({ clientRequestId: text }),
      query: readParameters({}),
      success: reply.events(turnEvents),
      errors: { unauthorized, request_not_found: agentErrors.request_not_found },
    },
    followUp: {
      method: "POST",
      path: "/api/query/follow-up",
      summary: "Submit another query to a session",
      bodyLimit: QUERY_BYTES,
      body: followUpBody,
      success: reply.json(
        v.object({ ok: v.literal(true), sessionId: text, clientRequestId: text, duplicate: v.optional(v.boolean()) }),
        202,
      ),
      errors: { ...submissionErrors, session_not_found: agentErrors.session_not_found },
    },
    steer: {
      method: "POST",
      path: "/api/query/client-requests/:clientRequestId/steer",
      summary: "Say something to the turn of a submission while it goes on",
      params: v.strictObject({ clientRequestId: text }),
      body: steerBody,
      success: reply.json(steerResult, 202),
      errors: {
        unauthorized,
        invalid_request,
        user_required: agentErrors.user_required,
        request_not_found: agentErrors.request_not_found,
        turn_ended: agentErrors.turn_ended,
        too_many_messages: agentErrors.too_many_messages,
        steering_unsupported: agentErrors.steering_unsupported,
        CLIENT_REQUEST_BODY_MISMATCH: agentErrors.CLIENT_REQUEST_BODY_MISMATCH,
        registry_unavailable: agentErrors.registry_unavailable,
      },
    },
    lookup: {
      method: "POST",
      path: "/api/query/client-requests/lookup",
      summary: "Look up the state of submissions",
      body: lookupBody,
      faults: {
        invalid_request: agentErrors.invalid_lookup,
        invalid_json: agentErrors.invalid_lookup,
        origin_not_allowed: agentErrors.origin_not_allowed,
      },
      success: reply.json(lookupResult),
      errors: { unauthorized, user_required: agentErrors.user_required },
    },
    conversations: {
      method: "GET",
      path: "/api/conversations",
      summary: "List conversations, last changed first",
      query: readParameters({ limit: parameter, after: parameter }),
      success: reply.json(v.object({ conversations: v.array(conversation), next: optionalText })),
      errors: { unauthorized, invalid_pagination },
    },
    messages: {
      method: "GET",
      path: "/api/conversations/:id/messages",
      summary: "Read the newest messages of a conversation's branch, or those before one",
      params: byId,
      query: readParameters({ limit: parameter, before: parameter, branch: parameter }),
      success: reply.json(
        v.object({
          conversationId: text,
          /** The branch that is read. Without `?branch=`, it is the chosen one. */
          branch: v.number(),
          messages: v.array(conversationMessage),
          branches: v.array(messageSiblings),
          skipped: v.number(),
          before: v.optional(v.number()),
        }),
      ),
      errors: { unauthorized, invalid_pagination, conversation_not_found, branch_not_found: agentErrors.branch_not_found },
    },
    chooseBranch: {
      method: "PUT",
      path: "/api/conversations/:id/branch",
      summary: "Choose the branch of a conversation that is shown and continued",
      params: byId,
      body: objectOnly(v.strictObject({ branch: v.pipe(v.number(), v.safeInteger(), v.minValue(1)) })),
      success: reply.json(v.object({ conversationId: text, branch: v.number() })),
      errors: {
        unauthorized,
        invalid_request,
        conversation_not_found,
        conversation_busy: agentErrors.conversation_busy,
        branch_not_found: agentErrors.branch_not_found,
        turn_not_ended: agentErrors.turn_not_ended,
        too_many_branches: agentErrors.too_many_branches,
        registry_unavailable: agentErrors.registry_unavailable,
      },
    },
    runningTurn: {
      method: "GET",
      path: "/api/conversations/:id/running-turn",
      summary: "Read the turn of a conversation that runs now; `query:watch` sends its events",
      params: byId,
      query: readParameters({}),
      success: reply.json(v.object({ turn: v.nullable(runningTurn) })),
      errors: { unauthorized, conversation_not_found },
    },
    clear: {
      method: "POST",
      path: "/api/conversations/:id/clear",
      summary: "Interrupt a conversation's turns and remove its messages",
      params: byId,
      success: reply.json(v.object({ conversationId: text, cleared: v.literal(true) })),
      errors: { unauthorized, conversation_not_found, registry_unavailable: agentErrors.registry_unavailable },
    },
    ...budgetRoutes,
    stopTurns: {
      method: "POST",
      path: "/api/users/:userId/stop-turns",
      summary: "Stop all turns of a user that wait or execute; for the owner",
      params: v.strictObject({ userId: text }),
      success: reply.json(v.object({ userId: text, stopped: v.number() })),
      errors: { unauthorized, owner_required: agentErrors.owner_required },
    },
  },
);
