import { type Channel, openChannel, type ports, type Scope } from "@portico/core";
import { queryChannel } from "../channel.ts";
import { runOfSession } from "../conversations/conversations.ts";
import { agentErrors } from "../errors.ts";
import type { ClientRequests } from "../requests/client-requests.ts";
import type { Runs } from "../runs/runs.ts";
import type { Turn } from "../turns/turn.ts";
import { Audiences, type Listener } from "./audiences.ts";
import { writtenEvents } from "./replay.ts";

/** The realtime side of queries: who is connected, who hears which turn, and who may stop one. */
export interface QueryChannel {
  readonly audiences: Audiences;
  /**
   * The user who submits, and the client program that will hear of it: identity and connection must agree (specification 7.6). Throws the
   * errors of the contract.
   */
  submitter(who: ports.Caller, originSocketId: string): Listener;
  /** Tell the submitting connection that a follow-up is durable (specification 6.2). */
  followUpAccepted(originSocketId: string, sessionId: string, clientRequestId: string): void;
}

export interface QueryChannelGiven {
  readonly realtime: ports.Realtime;
  readonly telemetry: ports.Telemetry;
  readonly identity: ports.Identity;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly log: ports.EventLog;
  readonly requests: ClientRequests;
  readonly runs: Runs;
  /** Stops what executes in a session now. */
  readonly stopSession: (sessionId: string) => void;
  /** Stops one turn, whether it executes or waits. */
  readonly stopTurn: (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => Promise<void>;
}

/** Who holds a realtime connection. */
interface SocketHolder extends ports.Caller {
  readonly clientInstanceId: string;
  readonly received: ReadonlyMap<string, number>;
}

const NOTHING_RECEIVED: ReadonlyMap<string, number> = new Map();

/** Opens the channel (specification 4.6); it closes with the app. */
export function openQueryChannel(given: QueryChannelGiven, scope: Scope): QueryChannel {
  const { identity, clock, ids, runs, stopSession, stopTurn } = given;
  const sockets = new Map<string, SocketHolder>();
  const audiences = new Audiences({
    clock,
    // Short, because it travels with every event.
    life: ids.id("").slice(-8),
    wire: () => channel,
    written: (listener, clientRequestId) => writtenEvents(given, listener, clientRequestId),
  });
  scope.onClose(() => audiences.close());
  const channel: Channel<typeof queryChannel> = openChannel(
    given,
    queryChannel,
    {
      async admit({ token, clientInstanceId, received }, signal): Promise<SocketHolder> {
        const caller = await identity.resolve(token, signal);
        if (!caller) throw agentErrors.unauthorized();
        return { ...caller, clientInstanceId, received: received ? new Map(Object.entries(received)) : NOTHING_RECEIVED };
      },
      resume({ userId, clientInstanceId }, last) {
        return userId === undefined ? undefined : audiences.resume({ userId, clientInstanceId }, last);
      },
      joined({ id, who }, place) {
        sockets.set(id, who);
        const { userId, clientInstanceId, received } = who;
        if (userId !== undefined) audiences.join({ userId, clientInstanceId }, id, received, place!);
      },
      gone({ id, who: { userId, clientInstanceId } }) {
        sockets.delete(id);
        if (userId !== undefined) audiences.leave({ userId, clientInstanceId }, id);
      },
      receive: {
        async "query:abort"({ who: { userId } }, { sessionId, clientRequestId }) {
          const runId = runOfSession(sessionId);
          const run = userId === undefined || runId === undefined ? undefined : await runs.find(runId);
          // Callers cannot abort sessions of other users.
          if (userId === undefined || run?.value.user_id !== userId) return;
          if (clientRequestId !== undefined) await stopTurn({ userId, sessionId, clientRequestId });
          else stopSession(sessionId);
        },
      },
    },
    scope,
  );

  return {
    audiences,
    submitter(who, originSocketId) {
      if (who.userId === undefined) throw agentErrors.user_required();
      const socket = sockets.get(originSocketId);
      if (!socket) throw agentErrors.realtime_unavailable();
      if (socket.userId !== who.userId) throw agentErrors.socket_identity_mismatch();
      return { userId: who.userId, clientInstanceId: socket.clientInstanceId };
    },
    followUpAccepted(originSocketId, sessionId, clientRequestId) {
      channel.send(originSocketId, channel.say["query:followUpAccepted"]({ sessionId, clientRequestId }));
    },
  };
}
