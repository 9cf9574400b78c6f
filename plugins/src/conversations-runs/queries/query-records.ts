import { type ports, writeAgain } from "@portico/core";
import type { Approval } from "../approvals/approval.ts";
import { type TurnWait, type TurnWaits, withApprovals, withoutApprovals } from "../approvals/turn-waits.ts";
import { type Conversation, type Conversations, messageStream, type StoredMessage } from "../conversations/conversations.ts";
import type { LogLine, Pausing } from "../execution/pause-turn.ts";
import { subscriberOf } from "../delivery/subscriber.ts";
import { processIdOf } from "../delivery/numbered-turn.ts";
import { type ClientRequest, type ClientRequests, requestKey } from "../requests/client-requests.ts";
import { advanceRequest } from "../requests/request-state.ts";
import { firstRun } from "../turns/first-run.ts";
import { receiptStream } from "../runs/receipts.ts";
import { type Run, type Runs, withEvent } from "../runs/runs.ts";
import { boundedMessage } from "../turns/bounds.ts";
import { endedTurn, endRun, notBefore, toReceipt, type TurnEnd } from "../turns/turn-end.ts";
import type { Turn, TurnFile } from "../turns/turn.ts";
import { TurnStopped } from "../turns/turn-failed.ts";
import { type OwnershipCondition, writeWhileOwned } from "../turns/while-owned.ts";
import { storedParts } from "../turns/shown-files.ts";

export type QueryRecords = ReturnType<typeof createQueryRecords>;

/** The records of a turn, as they were read. */
export interface StoredTurn {
  readonly request: ports.Stored<ClientRequest>;
  readonly run: ports.Stored<Run> | undefined;
}

/** What turns of queries write: each step of a turn is one commit over the conversation, the request, the run and the receipt. */
export function createQueryRecords(given: {
  readonly log: ports.EventLog;
  readonly requests: ClientRequests;
  readonly runs: Runs;
  readonly conversations: Conversations;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly files: ports.UserFiles | undefined;
  readonly serverInstanceId: string;
  readonly waits: TurnWaits;
  readonly usage?: ports.Usage | undefined;
}) {
  const { log, requests, runs, conversations, clock, ids, files, serverInstanceId, waits, usage } = given;

  const read = async (turn: Turn): Promise<StoredTurn> => {
    const key = requestKey(turn.userId, turn.clientRequestId);
    const [request, run] = await Promise.all([requests.find(key), runs.find(turn.runId)]);
    if (!request || request.value.turnId !== turn.turnId) throw new Error("A turn has lost its request");
    return { request, run };
  };
  /** The writes of a run: a session's first turn begins it. */
  const runWrites = (before: ports.Stored<Run> | undefined, run: Run): readonly ports.Write[] =>
    before ? runs.replace(before, run) : runs.begin(run);
  const conversationWrites = (turn: Turn, at: string): readonly ports.Write[] => {
    const { conversationId, userId, agentId, sessionId } = turn;
    const conversation = { conversationId, userId, agentId, createdAt: at, updatedAt: at, sessionId, lastTurnId: turn.turnId };
    return turn.opens ? [conversations.write.put(conversationId, conversation, "absent")] : [];
  };
  const userMessage = (turn: Turn, at: string): { stream: string; entry: StoredMessage } => ({
    stream: messageStream(turn.conversationId),
    entry: {
      id: turn.userMessageId,
      role: "user",
      parts: storedParts(turn),
      at,
      turnId: turn.turnId,
      clientRequestId: turn.clientRequestId,
      metadata: turn.metadata,
    },
  });
  /** Before the answer, so that a reader sees it where it was written. */
  const summaryMessages = (turn: Turn, { summary }: TurnEnd, at: string): StoredMessage[] => {
    if (!summary) return [];
    const { turnId, clientRequestId } = turn;
    return [{ id: `${turnId}-s`, role: "assistant", parts: [summary], at, turnId, clientRequestId }];
  };
  const committed = (request: ClientRequest, number: number, at: number): ClientRequest => ({
    ...request,
    state: advanceRequest(request.state, "commit") as ClientRequest["state"],
    committedAt: at,
    serverInstanceId,
    number,
    audience: subscriberOf({ userId: request.userId, clientInstanceId: request.clientInstanceId ?? "" }),
  });
  const ended = (request: ClientRequest, at: number, steeredBy: readonly string[] = []): ClientRequest => ({
    ...request,
    state: advanceRequest(request.state, "end") as ClientRequest["state"],
    // The texts that were told are in the conversation.
    ...(request.steering && {
      steering: request.steering.map(({ id, digest }) => ({ id, digest, isTaken: steeredBy.includes(id) })),
    }),
    endedAt: at,
    waits: undefined,
    isOver: true,
    sweepAt: requests.sweepAt(at),
  });
  /** The admission holds the files of its query; they may be removed after the turn. */
  const releasedFiles = ({ turnId, media = [], files: attached = [] }: Turn): readonly ports.Write[] => {
    if (!files?.release || (media.length === 0 && attached.length === 0)) return [];
    const referencesOf = (used: readonly TurnFile[]) => used.map(({ reference }) => reference);
    return files.release(turnId, { mediaIds: referencesOf(media), fileReferences: referencesOf(attached) });
  };
  const begun = (before: Run, at: string): Run => {
    // One turn of a session executes at a time: a run that is still `running` here lost the end of its earlier turn. It counts as failed.
    const run = before.status === "running" ? withEvent(before, "turn-failed", at) : before;
    return withEvent(run, "turn-began", at, { turn_started_at: at, messageCount: (run.messageCount ?? 0) + 1 });
  };

  /** Why a turn is to stop, as its records say. */
  const stopIn = (request: ClientRequest | undefined, conversation: Conversation | undefined): string | undefined =>
    conversation?.clearing ? "conversation_cleared" : request?.stop;

  return {
    /** What is stored of a turn. */
    read,

    /**
     * The turn begins: the user message is durable in the conversation, the request committed and the run running. Answers why it is not to
     * continue if a user stopped it before. `number` is the turn's among those that began in this process.
     */
    begin: (
      turn: Turn,
      number: number,
      ownership: OwnershipCondition,
      before: StoredTurn,
    ): Promise<{ readonly stop: string | undefined; readonly isSteered: boolean }> => {
      let known: StoredTurn | undefined = before;
      return writeWhileOwned(ownership, async (condition) => {
        const [{ request, run }, conversation] = await Promise.all([
          known ?? read(turn),
          conversations.find(turn.conversationId),
        ]);
        known = undefined;
        const stop = stopIn(request.value, conversation?.value);
        const isSteered = request.value.steering !== undefined;
        // The store took an earlier attempt, and its answer was lost.
        const { serverInstanceId: began, number: beganAs, state } = request.value;
        if (state === "committed" && began === serverInstanceId && beganAs === number) return { stop, isSteered };
        const now = notBefore(clock.now(), request.value.reservedAt);
        const at = new Date(now).toISOString();
        await log.appendAll([userMessage(turn, at)], {
          records: [
            ...condition,
            requests.write.put(request.id, committed(request.value, number, now), request.version),
            ...runWrites(run, begun(run?.value ?? firstRun(turn, at), at)),
            ...conversationWrites(turn, at),
          ],
        });
        return { stop, isSteered };
      });
    },

    /**
     * The turn begins to wait for a person: what it asks and keeps is durable, with the last entry of its transcript, which `entries` follow.
     * Returns the sequence number of that entry, or undefined where that was so before. Throws TurnStopped if the turn is to stop.
     */
    wait: (turn: Turn, pausing: Pausing, transcript: LogLine, ownership: OwnershipCondition): Promise<number | undefined> =>
      writeWhileOwned(ownership, async (condition) => {
        const [{ request, run }, conversation] = await Promise.all([read(turn), conversations.find(turn.conversationId)]);
        // The store took an earlier attempt, and its answer was lost.
        if (request.value.waits === pausing.number) return undefined;
        const stop = stopIn(request.value, conversation?.value);
        if (stop !== undefined) throw new TurnStopped(stop);
        const at = new Date(clock.now()).toISOString();
        const [sequence] = await log.appendAll([transcript, ...pausing.entries], {
          records: [
            ...condition,
            requests.write.put(request.id, { ...request.value, waits: pausing.number }, request.version),
            // So that a clearing that begins meanwhile finds the wait, or the wait finds the clearing.
            ...(conversation ? [conversations.write.put(conversation.id, conversation.value, conversation.version)] : []),
            ...(run ? runs.replace(run, withApprovals(run.value, pausing.approvals, at)) : []),
            ...pausing.writes,
          ],
        });
        return sequence;
      }),

    /** The turn goes on after a wait. Returns the ended approvals, and why it is to stop. */
    goOn: (
      turn: Turn,
      wait: TurnWait,
      ownership: OwnershipCondition,
    ): Promise<{ readonly approvals: readonly Approval[]; readonly stop: string | undefined; readonly isSteered: boolean }> =>
      writeWhileOwned(ownership, async (condition) => {
        const now = clock.now();
        const [{ request, run }, conversation, ended] = await Promise.all([
          read(turn),
          conversations.find(turn.conversationId),
          waits.end(wait, now),
        ]);
        const { waits: _waits, ...rest } = request.value;
        await runs.writeAll([
          ...condition,
          requests.write.put(request.id, rest, request.version),
          ...(run ? runs.replace(run, { ...withoutApprovals(run.value), updatedAt: new Date(now).toISOString() }) : []),
          ...ended.writes,
        ]);
        const isSteered = request.value.steering !== undefined;
        return { approvals: ended.approvals, stop: stopIn(request.value, conversation?.value), isSteered };
      }),

    /**
     * The turn has ended: stores answer, receipt, request and run in one commit with the last entry of its transcript. Returns the sequence number of that entry.
     * Undefined where that was so before. Throws EngineFenced where another process ended it. `number` is for a turn whose beginning was not written.
     */
    end: (
      turn: Turn,
      end: TurnEnd,
      transcript: { readonly stream: string; readonly entry: object },
      number: number,
      ownership: OwnershipCondition,
    ): Promise<number | undefined> =>
      writeWhileOwned(ownership, async (condition) => {
        const { request, run: before } = await read(turn);
        const { state } = request.value;
        if (state === "ended" || state === "tombstone") {
          // Either this execution wrote it and did not learn so, or another process closed the turn.
          if (condition.length > 0) await runs.writeAll(condition);
          return undefined;
        }
        const isBegun = state === "committed";
        const { reservedAt, committedAt } = request.value;
        // It could not go on after its wait.
        const wait = request.value.waits === undefined ? undefined : await waits.find(turn.turnId);
        const left = wait && (await waits.end(wait, clock.now()));
        const now = notBefore(clock.now(), reservedAt, committedAt, isBegun ? before?.value.turn_started_at : undefined);
        const at = new Date(now).toISOString();
        const found = before?.value ?? firstRun(turn, at);
        const run = isBegun ? found : begun(found, at);
        const messages = end.messages.map(boundedMessage).map(({ role, parts }, index): StoredMessage => ({
          id: `${turn.turnId}-a${index + 1}`,
          role,
          // Only its own messages may hold a summary.
          parts: parts.filter((part) => part.type !== "summary"),
          at,
          turnId: turn.turnId,
          clientRequestId: turn.clientRequestId,
          ...(role === "user" && { steers: true }),
        }));
        const sequences = await log.appendAll(
          [
            ...(isBegun ? [] : [userMessage(turn, at)]),
            ...[...summaryMessages(turn, end, at), ...messages].map((entry) => ({
              stream: messageStream(turn.conversationId),
              entry,
            })),
            { stream: receiptStream(turn.runId), entry: toReceipt(turn, end, run, { id: ids.id("rcp_"), at }) },
            transcript,
          ],
          {
            records: [
              ...condition,
              requests.write.put(
                request.id,
                ended(isBegun ? request.value : committed(request.value, number, now), now, end.steeredBy),
                request.version,
              ),
              ...runWrites(before, endRun({ ...run, messageCount: (run.messageCount ?? 0) + messages.length }, turn, end, at)),
              ...(isBegun ? [] : conversationWrites(turn, at)),
              ...releasedFiles(turn),
              ...(left?.writes ?? []),
            ],
          },
        );
        usage?.ended(endedTurn(turn, end, run, now));
        return sequences.at(-1);
      }),

    /** In which process a turn began, and as which of its turns. Undefined where nothing is remembered of it. */
    async beganAs(turn: Turn): Promise<{ readonly processId: string; readonly number: number } | undefined> {
      const request = (await requests.find(requestKey(turn.userId, turn.clientRequestId)))?.value;
      if (request?.serverInstanceId === undefined || request.number === undefined) return undefined;
      return { processId: processIdOf(request.serverInstanceId), number: request.number };
    },

    /**
     * Say that a turn is to stop. Answers whether it executes; one that waits stops when it begins. One that waits for a person is due, and is
     * returned.
     */
    stop: (
      userId: string,
      clientRequestId: string,
      sessionId: string,
      reason: string,
    ): Promise<"waits" | "executes" | "ended" | { readonly turnId: string }> =>
      writeAgain(async () => {
        const request = await requests.find(requestKey(userId, clientRequestId));
        if (!request || request.value.sessionId !== sessionId) return "ended";
        const { state } = request.value;
        if (state !== "reserved" && state !== "committed") return "ended";
        const stopped = requests.write.put(request.id, { ...request.value, stop: reason }, request.version);
        if (request.value.waits === undefined) {
          await runs.writeAll([stopped]);
          return state === "reserved" ? "waits" : "executes";
        }
        const { turnId } = request.value;
        await runs.writeAll([stopped, ...(await waits.stop(turnId, clock.now()))]);
        return { turnId };
      }),

    /** What the user said to a turn that goes on, beside the messages with these IDs. */
    async steeringOf(turn: Turn, taken: readonly string[]): Promise<readonly { readonly id: string; readonly text: string }[]> {
      const request = (await requests.find(requestKey(turn.userId, turn.clientRequestId)))?.value;
      return (request?.steering ?? []).flatMap(({ id, text }) =>
        text === undefined || taken.includes(id) ? [] : [{ id, text }],
      );
    },

    /** Why a turn is to stop that has begun. */
    async stopOf(turn: Turn): Promise<string | undefined> {
      const key = requestKey(turn.userId, turn.clientRequestId);
      const [request, conversation] = await Promise.all([requests.find(key), conversations.find(turn.conversationId)]);
      return stopIn(request?.value, conversation?.value);
    },
  };
}
