import { type Channel, openChannel, ports, type Scope } from "@portico/core";
import type { InferOutput } from "valibot";
import { queryChannel } from "../channel.ts";
import { type Conversations, ownConversation, runOfSession } from "../conversations/conversations.ts";
import { agentErrors } from "../errors.ts";
import { type ClientRequests, requestKey } from "../requests/client-requests.ts";
import type { Runs } from "../runs/runs.ts";
import { readTranscript } from "../turns/transcript.ts";
import type { Turn, TurnEvent } from "../turns/turn.ts";
import { Subscribers } from "./subscribers.ts";
import { type Listener } from "./subscriber.ts";
import { processIdOf } from "./numbered-turn.ts";
import { recentTurns, waitingTurns } from "./recent-turns.ts";
import { WatchedTurns } from "./watched-turns.ts";

/** The realtime side of queries: the connections, the turns whose events they receive, and the right to stop a turn. */
export interface QueryChannel {
  readonly subscribers: Subscribers;
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
  const subscribers = new Subscribers({
    ...{ clock, log, bus },
    processId: processIdOf(serverInstanceId),
    wire: () => channel,
    written: (listener, clientRequestId) => writtenEvents(given, listener, clientRequestId),
    waiting: (listener) => waitingTurns(requests, listener),
    recent: engine.isShared ? (listener, since) => recentTurns(requests, listener, since) : undefined,
  });
  scope.onClose(() => subscribers.close());
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
        return userId === undefined ? undefined : subscribers.resume({ userId, clientInstanceId }, last, saysWhatItHas);
      },
      joined({ id, who }, resumePoint) {
        sockets.set(id, who);
        const { userId, clientInstanceId, received } = who;
        presence.hold(id, { userId, clientInstanceId } satisfies SocketFacts);
        leases.hold(id, who.ended);
        if (userId !== undefined) subscribers.join({ userId, clientInstanceId }, id, received, resumePoint!);
      },
      gone({ id, who: { userId, clientInstanceId, ended } }) {
        sockets.delete(id);
        watched.leave(id);
        leases.release(id, ended);
        presence.release(id);
        if (userId !== undefined) subscribers.leave({ userId, clientInstanceId }, id);
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
    subscribers,
    async submitter(who, originSocketId) {
      if (who.userId === undefined) throw agentErrors.user_required();
      const socket = sockets.get(originSocketId) ?? (await locate(originSocketId));
      if (!socket) throw agentErrors.realtime_unavailable();
      if (socket.userId !== who.userId) throw agentErrors.socket_identity_mismatch();
      return { userId: who.userId, clientInstanceId: socket.clientInstanceId };
    },
    followUpAccepted(listener, originSocketId, sessionId, clientRequestId) {
      subscribers.announce(listener, channel.say["query:followUpAccepted"]({ sessionId, clientRequestId }), originSocketId);
    },
  };
}

type Named = InferOutput<(typeof queryChannel)["receives"]["query:abort"]>;

/** What an abort stops: one submission, or whatever turn of a session executes now. */
export interface MeantTurn {
  readonly sessionId: string;
  readonly clientRequestId?: string | undefined;
}

/**
 * The turn of this user that an abort names, whether it has begun or not. Undefined if no turn has all of the identifiers that the abort names:
 * a client with a wrong picture of the service must not stop another turn (open points 7 and 15).
 */
export async function findMeantTurn(
  { requests, runs }: { readonly requests: Pick<ClientRequests, "find">; readonly runs: Pick<Runs, "find"> },
  userId: string,
  { sessionId, clientRequestId, conversationId, agentId }: Named,
): Promise<MeantTurn | undefined> {
  const found = clientRequestId === undefined ? await ofSession() : await ofRequest(clientRequestId);
  if (!found || found.userId !== userId) return undefined;
  const isMeant = fits(sessionId, found.sessionId) && fits(conversationId, found.conversationId) && fits(agentId, found.agentId);
  return isMeant ? { sessionId: found.sessionId, clientRequestId } : undefined;

  async function ofRequest(id: string) {
    return (await requests.find(requestKey(userId, id)))?.value;
  }

  async function ofSession() {
    const runId = sessionId === undefined ? undefined : runOfSession(sessionId);
    const run = runId === undefined ? undefined : (await runs.find(runId))?.value;
    return run && { userId: run.user_id, agentId: run.agent_id, conversationId: run.conversation_id, sessionId: sessionId! };
  }
}

const fits = (named: string | undefined, found: string | undefined): boolean => named === undefined || named === found;

/**
 * The written and kept events of a turn, also of an earlier process, and from more than two minutes ago. Empty if the request is not of
 * this user and this client program.
 */
export async function* writtenEvents(
  { log, requests }: { readonly log: ports.EventLog; readonly requests: Pick<ClientRequests, "find"> },
  { userId, clientInstanceId }: Listener,
  clientRequestId: string,
): AsyncIterable<TurnEvent> {
  const request = (await requests.find(requestKey(userId, clientRequestId)))?.value;
  if (request?.clientInstanceId === clientInstanceId) yield* readTranscript(log, request.turnId);
}

/** The connections that one signal ends. */
interface Lease {
  readonly sockets: Set<string>;
  readonly end: () => void;
}

/**
 * Ends connections whose token has ended. The sockets of one token share one listener, because adding a listener to a signal takes longer
 * the more listeners it has.
 */
export class SocketLeases {
  readonly #drop: (socketId: string) => void;
  readonly #leases = new Map<AbortSignal, Lease>();

  constructor(drop: (socketId: string) => void) {
    this.#drop = drop;
  }

  /** The connection ends when `ended` aborts, at once if it has. */
  hold(socketId: string, ended: AbortSignal | undefined): void {
    if (!ended) return;
    if (ended.aborted) return this.#drop(socketId);
    const known = this.#leases.get(ended);
    if (known) return void known.sockets.add(socketId);
    const sockets = new Set([socketId]);
    const end = () => {
      this.#leases.delete(ended);
      for (const each of sockets) this.#drop(each);
    };
    this.#leases.set(ended, { sockets, end });
    ended.addEventListener("abort", end, { once: true });
  }

  /** The connection has ended. */
  release(socketId: string, ended: AbortSignal | undefined): void {
    const held = ended && this.#leases.get(ended);
    if (!held?.sockets.delete(socketId) || held.sockets.size > 0) return;
    this.#leases.delete(ended!);
    ended!.removeEventListener("abort", held.end);
  }

  close(): void {
    for (const [ended, { end }] of this.#leases) ended.removeEventListener("abort", end);
    this.#leases.clear();
  }
}
