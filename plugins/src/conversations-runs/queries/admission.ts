import { ports, type ServiceError, writeAgain } from "@portico/core";
import { branchOff, continueWith, hasBranch } from "../conversations/branches.ts";
import { type Conversation, type Conversations, messageStream, runOfSession, workKind } from "../conversations/conversations.ts";
import { type Question, readMessage } from "../conversations/messages.ts";
import { agentErrors } from "../errors.ts";
import { firstRun } from "../turns/first-run.ts";
import type { Runs } from "../runs/runs.ts";
import { type Delegation, newIdSuffix, type Turn } from "../turns/turn.ts";
import type { TurnLimits } from "../turns/turn-limits.ts";
import { type ClientRequest, type ClientRequests, isOpenRequest, requestKey } from "../requests/client-requests.ts";
import { advanceRequest } from "../requests/request-state.ts";

/** One checked submission. Its conversation is not yet decided. */
export interface Submission extends Pick<
  Turn,
  | "userId"
  | "agentId"
  | "clientRequestId"
  | "userMessageId"
  | "prompt"
  | "model"
  | "maxTurns"
  | "metadata"
  | "clientInstanceId"
  | "media"
  | "files"
  | "workflowDepth"
> {
  readonly requestDigest: string;
  readonly contentDigest: string;
  readonly delegation?: Delegation | undefined;
}

/** The conversation of a turn: an existing one or a new one. */
export type Target =
  | {
      readonly conversationId?: string | undefined;
      /** The message in whose place a new branch begins, or the error that says why the branch cannot begin. */
      readonly branchAt?: Question | ServiceError | undefined;
    }
  | { readonly sessionId: string };

/** Refuses a new submission, or returns the writes that admit this turn. Called again after a conflict. */
type CheckNew = (turnId: string) => Promise<readonly ports.Write[]>;

export type Admission = ReturnType<typeof createAdmission>;

/** Admits submissions, each exactly once (open points 7). */
export function createAdmission(given: {
  readonly engine: ports.Engine;
  readonly log: ports.EventLog;
  readonly requests: ClientRequests;
  readonly conversations: Conversations;
  readonly runs: Runs;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly telemetry: ports.Telemetry;
  readonly limits: TurnLimits;
}) {
  const { engine, log, requests, conversations, runs, clock, ids, telemetry, limits } = given;

  /**
   * Resolves when the turn is durable, with its request and the conversation that it continues in the same commit. The same submission
   * again gets the first one's. Throws the errors of the contract.
   */
  const admit = async (
    submission: Submission,
    target: Target,
    check: CheckNew,
  ): Promise<{ readonly request: ClientRequest; readonly isDuplicate: boolean }> => {
    const key = requestKey(submission.userId, submission.clientRequestId);
    // An existing conversation may be busy or removed. That matters for a new submission, and not for one that was admitted before, so the
    // registry is read first.
    // Otherwise the write itself finds out.
    let isAsked = "sessionId" in target || target.conversationId !== undefined;
    const arrivedAt = clock.now();
    return writeAgain(async () => {
      const known = isAsked ? await requests.find(key) : undefined;
      isAsked = true;
      if (known) return { request: sameContent(known.value, submission), isDuplicate: true };
      const now = clock.now();
      const ownSuffix = newIdSuffix(ids, now);
      const turnId = `turn_${ownSuffix}`;
      let holds: readonly ports.Write[];
      let location: TurnLocation;
      try {
        holds = await check(turnId);
        location = await locate(submission, target, new Date(now).toISOString(), ownSuffix, turnId);
        // A delegated turn belongs to a turn that was admitted. It is limited while it executes.
        if (!submission.delegation) await limits.admit({ userId: submission.userId, agentId: location.agentId, turnId });
      } catch (error) {
        // An admitted submission stays admitted, even if its agent was removed or changed, or a limit is reached.
        const admitted = await requests.find(key);
        if (admitted) return { request: sameContent(admitted.value, submission), isDuplicate: true };
        throw error;
      }
      const turn = {
        ...toTurn(submission, location, turnId),
        traceparent: telemetry.traceparent(),
        arrivedAt,
        acceptedAt: clock.now(),
      };
      const request = toRequest(submission, turn, now);
      const records = [requests.write.put(key, request, "absent"), ...location.writes, ...holds];
      try {
        await engine.start(workKind(turn.delegation?.chain.length ?? 0), turn.turnId, turn, { key: turn.sessionId, records });
      } catch (error) {
        limits.withdraw(turnId);
        throw error;
      }
      return { request, isDuplicate: false };
    });
  };

  return {
    async admit(submission: Submission, target: Target, check: CheckNew = async () => []) {
      try {
        return await admit(submission, target, check);
      } catch (error) {
        throw toServiceError(error);
      }
    },
    /** Chooses the branch that the next turn of a conversation continues. False if there is no such conversation. */
    async chooseBranch(conversationId: string, branch: number): Promise<boolean> {
      try {
        return await writeAgain(() => choose(conversationId, branch));
      } catch (error) {
        throw toServiceError(error);
      }
    },
  };

  async function choose(conversationId: string, branch: number): Promise<boolean> {
    const stored = await conversations.find(conversationId);
    if (!stored) return false;
    if (stored.value.clearing) throw agentErrors.conversation_busy();
    const branches = await conversations.branches.find(conversationId);
    const before = branches?.value.jumps ?? [];
    if (!hasBranch(before, branch)) throw agentErrors.branch_not_found();
    if (!(await haveTurnsEnded(stored.value))) throw agentErrors.turn_not_ended();
    const jumps = continueWith(before, branch, await log.count(messageStream(conversationId)));
    if (!jumps) throw agentErrors.too_many_branches();
    await runs.writeAll([
      // Under the version that was read: a turn that was accepted meanwhile continues the branch that was chosen before.
      conversations.write.put(conversationId, stored.value, stored.version),
      conversations.branches.write.put(conversationId, { jumps }, branches?.version ?? "absent"),
    ]);
    return true;
  }

  /** The write that lets the next message take the place of an earlier one. */
  async function newBranch(conversation: Conversation, at: Question | ServiceError): Promise<ports.Write> {
    if (at instanceof Error) throw at;
    const { conversationId } = conversation;
    const stream = messageStream(conversationId);
    // The conversation may have been cleared since the message was found.
    for await (const entry of log.read(stream, { from: at.sequence, limit: 1 })) {
      const message = readMessage(entry);
      if (message?.id !== at.message.id || message.turnId !== at.message.turnId) break;
      if (!(await haveTurnsEnded(conversation))) throw agentErrors.turn_not_ended();
      const [branches, count] = await Promise.all([conversations.branches.find(conversationId), log.count(stream)]);
      const jumps = branchOff(branches?.value.jumps ?? [], at.sequence, count);
      if (!jumps) throw agentErrors.too_many_branches();
      return conversations.branches.write.put(conversationId, { jumps }, branches?.version ?? "absent");
    }
    throw agentErrors.message_not_found();
  }

  /**
   * Whether all accepted turns of a conversation have ended. Each writes the user's message when it begins, so the newest message is of the turn that
   * was accepted last, or that turn has not begun.
   */
  async function haveTurnsEnded({ conversationId, userId, lastTurnId }: Conversation): Promise<boolean> {
    for await (const entry of log.read(messageStream(conversationId), { backwards: true, limit: 1 })) {
      const message = readMessage(entry);
      if (!message) break;
      if (message.turnId !== lastTurnId) return false;
      const request = (await requests.find(requestKey(userId, message.clientRequestId)))?.value;
      return request?.turnId !== lastTurnId || !isOpenRequest(request);
    }
    // The newest message is damaged, or the conversation was cleared.
    const state = (await engine.status(lastTurnId))?.state;
    return state !== "waiting" && state !== "executing";
  }

  async function locate(
    submission: Submission,
    target: Target,
    at: string,
    ownSuffix: string,
    lastTurnId: string,
  ): Promise<TurnLocation> {
    const stored = "sessionId" in target ? await bySession(target.sessionId) : await byId(target.conversationId);
    if (stored === undefined) {
      if ("sessionId" in target) throw agentErrors.session_not_found();
      if (target.conversationId !== undefined) throw agentErrors.conversation_not_found();
    }
    const { userId, agentId, delegation } = submission;
    // Ownership is checked before anything else: conversations of other users count as missing (specification 5). A delegated task is one
    // turn.
    if (stored && (stored.value.userId !== userId || stored.value.depth !== undefined))
      throw "sessionId" in target ? agentErrors.session_not_found() : agentErrors.conversation_not_found();
    if (stored?.value.clearing) throw agentErrors.conversation_busy();
    if (stored && agentId !== "" && stored.value.agentId !== agentId) throw agentErrors.agent_mismatch();
    if (stored && "sessionId" in target && stored.value.sessionId !== target.sessionId) throw agentErrors.session_not_found();

    const sessionId = stored?.value.sessionId;
    const suffix = sessionId?.slice("ses_".length) ?? ownSuffix;
    const conversation: Conversation = {
      ...(stored?.value ?? {
        conversationId: `conv_${ownSuffix}`,
        userId,
        agentId,
        createdAt: at,
        depth: delegation?.chain.length,
      }),
      updatedAt: at,
      sessionId: `ses_${suffix}`,
      lastTurnId,
    };
    const { conversationId } = conversation;
    const location = { conversationId, agentId: conversation.agentId, sessionId: `ses_${suffix}`, runId: `run_${suffix}` };
    if (stored) {
      const branchAt = "sessionId" in target ? undefined : target.branchAt;
      const branching = branchAt ? [await newBranch(stored.value, branchAt)] : [];
      // Under the version that was read: a conversation that is cleared meanwhile takes no turn.
      return { ...location, writes: [conversations.write.put(conversationId, conversation, stored.version), ...branching] };
    }
    // A new conversation is stored when its first turn starts, and is unknown before. The run of a delegated turn is reported immediately.
    if (!delegation) return { ...location, opens: true, writes: [] };
    const run = firstRun({ ...submission, ...location }, at);
    return { ...location, writes: [conversations.write.put(conversationId, conversation, "absent"), ...runs.begin(run)] };
  }

  async function byId(conversationId: string | undefined) {
    return conversationId === undefined ? undefined : conversations.find(conversationId);
  }

  async function bySession(sessionId: string) {
    const runId = runOfSession(sessionId);
    return byId(runId === undefined ? undefined : (await runs.find(runId))?.value.conversation_id);
  }
}

interface TurnLocation extends Pick<Turn, "conversationId" | "agentId" | "sessionId" | "runId" | "opens"> {
  readonly writes: readonly ports.Write[];
}

function toTurn(
  submission: Submission,
  { writes: _writes, ...location }: TurnLocation,
  turnId: string,
): Omit<Turn, "acceptedAt"> {
  const { requestDigest: _requestDigest, contentDigest: _contentDigest, ...rest } = submission;
  return { ...rest, ...location, turnId };
}

function toRequest(submission: Submission, turn: Turn, now: number): ClientRequest {
  return {
    userId: turn.userId,
    clientRequestId: turn.clientRequestId,
    userMessageId: turn.userMessageId,
    agentId: turn.agentId,
    conversationId: turn.conversationId,
    sessionId: turn.sessionId,
    runId: turn.runId,
    turnId: turn.turnId,
    requestDigest: submission.requestDigest,
    contentDigest: submission.contentDigest,
    clientInstanceId: turn.clientInstanceId,
    state: advanceRequest("absent", "submit") as ClientRequest["state"],
    reservedAt: now,
  };
}

/** The same ID means the same content, by the client's digest and by ours (open points 7). */
function sameContent(known: ClientRequest, submission: Submission): ClientRequest {
  if (known.requestDigest !== submission.requestDigest || known.contentDigest !== submission.contentDigest)
    throw agentErrors.CLIENT_REQUEST_BODY_MISMATCH();
  return known;
}

/** Stores that do not answer leave the admission open: the client looks it up before it submits again (specification 7.6). */
function toServiceError(error: unknown): ServiceError | unknown {
  const isUnsure =
    error instanceof ports.RecordConflict ||
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.EngineUnavailable ||
    error instanceof ports.EngineFenced;
  return isUnsure ? agentErrors.registry_unavailable(undefined, undefined, error) : error;
}
