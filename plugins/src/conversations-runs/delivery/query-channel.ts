import { type Channel, openChannel, ports, type Scope } from "@portico/core";
import { queryChannel } from "../channel.ts";
import type { Conversations } from "../conversations/conversations.ts";
import { ownConversation } from "../conversations/own-conversation.ts";
import { agentErrors } from "../errors.ts";
import { type ClientRequests, requestKey } from "../queries/client-requests.ts";
import type { Runs } from "../runs/runs.ts";
import type { Turn } from "../turns/turn.ts";
import { Audiences } from "./audiences.ts";
import type { Listener } from "./listener.ts";
import { findMeantTurn } from "./meant-turn.ts";
import { lifeOf } from "./numbered-turn.ts";
import { recentTurns, waitingTurns } from "./recent-turns.ts";
import { writtenEvents } from "./replay.ts";
import { SocketLeases } from "./socket-leases.ts";
import { WatchedTurns } from "./watched-turns.ts";

/** The realtime side of queries: the connections, the turns whose events they receive, and the right to stop a turn. */
export interface QueryChannel {
  readonly audiences: Audiences;
  /**
   * The user who submits, and the client program that receives the events: identity and connection must agree (specification 7.6). Any
   * process may hold the connection. Rejects with the errors of the contract.
   */
  submitter(who: ports.Caller, originSocketId: string): Promise<Listener>;
  /** Tell the submitting connection that a follow-up is durable (specification 6.2). */
  followUpAccepted(listener: Listener, originSocketId: string, sessionId: string, clientRequestId: string): void;
}

export interface QueryChannelGiven {
  readonly engine: ports.Engine;
  readonly realtime: ports.Realtime;
  readonly telemetry: ports.Telemetry;
  readonly identity: ports.Identity;
  readonly clock: ports.Clock;
  readonly log: ports.EventLog;
  readonly bus: ports.Bus;
  readonly presence: ports.Presence;
  readonly serverInstanceId: string;
  readonly requests: ClientRequests;
  readonly runs: Runs;
  readonly conversations: Pick<Conversations, "find">;
  /** Stops the turn of a session that executes, or waits for a person. */
  readonly stopSession: (userId: string, sessionId: string) => Promise<void>;
  /** Stops one turn, whether it executes or waits. */
  readonly stopTurn: (turn: Pick<Turn, "userId" | "sessionId" | "clientRequestId">) => Promise<void>;
}

/** Data about a realtime connection for other processes. */
interface SocketFacts {
  readonly userId?: string | undefined;
  readonly clientInstanceId: string;
}

/** The user and the client program of a realtime connection. */
interface SocketHolder extends ports.Caller, Omit<SocketFacts, "userId"> {
  readonly received: ReadonlyMap<string, number>;
}

const NOTHING_RECEIVED: ReadonlyMap<string, number> = new Map();

/** Opens the channel (specification 4.6); it closes with the app. */
export function openQueryChannel(given: QueryChannelGiven, scope: Scope): QueryChannel {
  const { engine, identity, clock, log, bus, presence, telemetry } = given;
  const { requests, runs, conversations, serverInstanceId, stopSession, stopTurn } = given;
  const sockets = new Map<string, SocketHolder>();
  const leases = new SocketLeases((socketId) => channel.drop(socketId));
  scope.onClose(() => leases.close());
  const audiences = new Audiences({
    ...{ clock, log, bus },
    life: lifeOf(serverInstanceId),
    wire: () => channel,
    written: (listener, clientRequestId) => writtenEvents(given, listener, clientRequestId),
    waiting: (listener) => waitingTurns(requests, listener),
    recent: engine.isShared ? (listener, since) => recentTurns(requests, listener, since) : undefined,
  });
  scope.onClose(() => audiences.close());
  const watched = new WatchedTurns({ log, clock, telemetry, wire: () => channel });
  scope.onClose(() => watched.close());
  const channel: Channel<typeof queryChannel> = openChannel(
    given,
    queryChannel,
    {
      async admit({ token, clientInstanceId, received }, signal): Promise<SocketHolder> {
        const caller = await identity.resolve(token, signal);
        if (!caller) throw agentErrors.unauthorized();
        return { ...caller, clientInstanceId, received: received ? new Map(Object.entries(received)) : NOTHING_RECEIVED };
      },
      resume({ userId, clientInstanceId, received }, last) {
        const saysWhatItHas = received !== NOTHING_RECEIVED;
        return userId === undefined ? undefined : audiences.resume({ userId, clientInstanceId }, last, saysWhatItHas);
      },
      joined({ id, who }, place) {
        sockets.set(id, who);
        const { userId, clientInstanceId, received } = who;
        presence.hold(id, { userId, clientInstanceId } satisfies SocketFacts);
        leases.hold(id, who.ended);
        if (userId !== undefined) audiences.join({ userId, clientInstanceId }, id, received, place!);
      },
      gone({ id, who: { userId, clientInstanceId, ended } }) {
        sockets.delete(id);
        watched.leave(id);
        leases.release(id, ended);
        presence.release(id);
        if (userId !== undefined) audiences.leave({ userId, clientInstanceId }, id);
      },
      receive: {
        async "query:abort"({ who: { userId } }, named) {
          // Callers cannot abort turns of other users.
          const meant = userId === undefined ? undefined : await findMeantTurn({ requests, runs }, userId, named);
          if (userId === undefined || !meant) return;
          const { sessionId, clientRequestId } = meant;
          if (clientRequestId !== undefined) await stopTurn({ userId, sessionId, clientRequestId });
          else await stopSession(userId, sessionId);
        },
        "query:watch"({ id, who }, { conversationId, clientRequestId, seq = 0 }) {
          const find = async () => {
            const userId = (await ownConversation(conversations, who, conversationId))?.userId;
            const request = userId === undefined ? undefined : (await requests.find(requestKey(userId, clientRequestId)))?.value;
            // Each of a user's requests is of one conversation.
            return request?.conversationId === conversationId ? request : undefined;
          };
          // The connection may have ended meanwhile.
          if (sockets.has(id)) watched.watch(id, { conversationId, clientRequestId, find }, seq);
        },
        "query:unwatch"({ id }, { clientRequestId, conversationId }) {
          watched.unwatch(id, clientRequestId, conversationId);
        },
      },
    },
    scope,
  );

  /** A connection of another process. */
  const locate = async (socketId: string): Promise<SocketFacts | undefined> => {
    try {
      return (await presence.locate(socketId))?.facts as SocketFacts | undefined;
    } catch (error) {
      if (error instanceof ports.PresenceUnavailable) throw agentErrors.realtime_unavailable(undefined, undefined, error);
      throw error;
    }
  };

  return {
    audiences,
    async submitter(who, originSocketId) {
      if (who.userId === undefined) throw agentErrors.user_required();
      const socket = sockets.get(originSocketId) ?? (await locate(originSocketId));
      if (!socket) throw agentErrors.realtime_unavailable();
      if (socket.userId !== who.userId) throw agentErrors.socket_identity_mismatch();
      return { userId: who.userId, clientInstanceId: socket.clientInstanceId };
    },
    followUpAccepted(listener, originSocketId, sessionId, clientRequestId) {
      audiences.announce(listener, channel.say["query:followUpAccepted"]({ sessionId, clientRequestId }), originSocketId);
    },
  };
}
