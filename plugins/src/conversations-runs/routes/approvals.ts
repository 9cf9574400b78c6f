import { auditActor, auditWriter, jsonList, ports } from "@portico/core";
import { type Approval, approvalId } from "../approvals/approval.ts";
import { agentErrors } from "../errors.ts";
import { FOLLOWED_APPROVALS, PAGE_LIMIT, RECONNECT_MS } from "../limits.ts";
import { readFilter, readLimit } from "../pagination.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { isRunId } from "./runs.ts";

/** Lists calls that wait for a decision: an owner sees all, a member those of its own runs. */
export function listApprovals({ runtime: { waits } }: ConversationServices): ConversationHandlers["approvals"] {
  return async ({ query, who }) => {
    const limit = readLimit(query.limit, PAGE_LIMIT);
    const after = readFilter("after", query.after);
    if (who.role !== "owner" && who.userId === undefined) return { approvals: [] };
    try {
      const { items, next } = await waits.open(who.role === "owner" ? undefined : who.userId, limit, after);
      return { approvals: items.map(toShown), ...(next !== undefined && { next }) };
    } catch (error) {
      if (error instanceof ports.RecordCursorInvalid)
        throw agentErrors.invalid_pagination("Invalid pagination: after must be the next of the page before");
      throw error;
    }
  };
}

/** Tells a caller when the calls that wait for its decision change: an owner of all, a member of those of its own runs. */
export function followApprovals({
  runtime: { waits, approvalChanges },
}: ConversationServices): ConversationHandlers["approvalChanges"] {
  return ({ who, head, signal, say, fail }) => {
    const caller = who.userId ?? "";
    if (approvalChanges.isFull(caller)) throw fail.too_many_readers();
    const look = async () => {
      if (who.role !== "owner" && who.userId === undefined) return { ids: [], hasMore: false };
      const { items, next } = await waits.open(who.role === "owner" ? undefined : who.userId, FOLLOWED_APPROVALS, undefined);
      // A call may wait again, with other arguments.
      return {
        ids: items.map(({ runId, callId, askedAt }) => `${approvalId(runId, callId)} ${askedAt}`),
        hasMore: next !== undefined,
      };
    };
    return (async function* () {
      yield { retryMs: RECONNECT_MS };
      const known = head.header("last-event-id");
      // A reader whose token has ended is told nothing more.
      const until = who.ended ? AbortSignal.any([signal, who.ended]) : signal;
      for await (const { id, count, hasMore } of approvalChanges.follow({ look, known, signal: until, caller }))
        yield { ...say["approvals:changed"]({ waiting: count, hasMore }), id };
    })();
  };
}

/** Decides a call, once: the owner, or the user of the run. */
export function decideApproval(services: ConversationServices): ConversationHandlers["decideApproval"] {
  const { clock, runtime, records } = services;
  const { waits, consents, argumentsFault } = runtime;
  const audit = auditWriter(services.audit, records);
  return async ({ params: { id: runId, callId }, body, who, head }) => {
    const { decision, comment, standing, arguments: args } = body;
    const at = clock.now();
    const { userId } = who;
    const found = isRunId(runId)
      ? await waits.decide(
          runId,
          callId,
          {
            ...{ decision, at, userId },
            ...(args !== undefined && { arguments: args }),
            ...(comment !== undefined && comment !== "" && { comment }),
          },
          {
            isVisible: (approval) => who.role === "owner" || (userId !== undefined && approval.userId === userId),
            async check({ tool }) {
              const fault = args && (await argumentsFault(tool.inputSchema, args));
              if (fault !== undefined)
                throw agentErrors.arguments_invalid(`The arguments do not fit the tool's schema: ${fault}`);
            },
            commit: ({ approval, writes }) =>
              audit.record(
                {
                  action: standing ? "approval.approve-standing" : `approval.${decision}`,
                  object: approvalId(runId, callId),
                  who: auditActor(who, head),
                },
                standing ? [...writes, consents.grant(subjectOf(approval), approval.tool.digest, at)] : writes,
              ),
          },
        )
      : undefined;
    if (found === undefined) throw agentErrors.approval_not_found();
    if (found === false) throw agentErrors.approval_decided();
    // Whatever happens now, the decision is durable: `tendWaits` tells the turn again.
    if (found.isDue) await waits.wake(found).catch(() => {});
    return { runId, callId, decision, decidedAt: new Date(at).toISOString() };
  };
}

/** Lists standing consents: an owner sees all, a member its own. */
export function listConsents({ runtime: { consents } }: ConversationServices): ConversationHandlers["consents"] {
  return ({ who }) => {
    if (who.role !== "owner" && who.userId === undefined) return { consents: [] };
    const found = consents.of(who.role === "owner" ? undefined : who.userId);
    return jsonList(
      "consents",
      (async function* () {
        for await (const page of found) yield page.map(({ digest: _digest, ...consent }) => consent);
      })(),
    );
  };
}

/** Revokes a standing consent: later calls of the tool ask again. */
export function revokeConsent(services: ConversationServices): ConversationHandlers["revokeConsent"] {
  const { runtime, records } = services;
  const audit = auditWriter(services.audit, records);
  return async ({ params: { id }, who, head }) => {
    const consent = await runtime.consents.find(id);
    if (!consent || (who.role !== "owner" && (who.userId === undefined || consent.userId !== who.userId)))
      throw agentErrors.consent_not_found();
    await audit.record({ action: "tool-consent.revoke", object: id, who: auditActor(who, head) }, [runtime.consents.revoke(id)]);
  };
}

const subjectOf = ({ userId, agentId, tool }: Approval) => ({ userId, agentId, toolId: tool.id });

function toShown(approval: Approval) {
  const { runId, callId, agentId, userId, sessionId, conversationId, clientRequestId, background, tool, askedAt, expiresAt } =
    approval;
  return {
    ...{ runId, callId, agentId, userId, sessionId },
    ...(conversationId !== undefined && { conversationId }),
    ...(clientRequestId !== undefined && { clientRequestId }),
    ...(background && { background }),
    toolId: tool.id,
    toolName: tool.name,
    description: tool.description,
    riskLevel: tool.riskLevel,
    arguments: approval.arguments,
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
  };
}
