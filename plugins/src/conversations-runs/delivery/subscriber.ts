import type { NumberedTurn } from "./numbered-turn.ts";
import { hash } from "node:crypto";
import type { ports } from "@portico/core";
import { OTHERS_COUNTED_MS, RESUME_POINT_TURNS } from "../limits.ts";
import type { Transcript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { FollowedTranscript } from "./followed-transcript.ts";
import { EndedTurns } from "./ended-turns.ts";
import { formatResumePoint, type ListedTurn, type ResumePoint } from "./resume-point.ts";
import type { Connection } from "./connection.ts";

/** One turn whose events a subscriber receives. */
export interface Watched extends NamedTurn {
  readonly transcript: Pick<Transcript, "position" | "page">;
  /** Present for a turn that executes in another process. */
  readonly elsewhere?: Elsewhere;
  /** Its end was sent. */
  isEnded: boolean;
  /** It sends no more events. */
  isOver: boolean;
  /** How many events were sent to the last connection that left. */
  left: number;
}

/** Data about a turn that executes in another process. */
export interface Elsewhere {
  readonly transcript: FollowedTranscript;
  /** Time of the last message about it, in milliseconds since 1970. */
  heardAt: number;
  /** How many events the connections have that are not behind on it. */
  level: number;
}

/** The connections of one client program, and the turns that they hear. */
export interface Subscriber {
  readonly key: string;
  readonly listener: Listener;
  /** Its topic on the bus; undefined where no client can come. */
  readonly topic: string | undefined;
  /** Hardly ever more than one. */
  connections: readonly Connection[];
  watched: readonly Watched[];
  /** Present from the first turn on that ended here. */
  ended: EndedTurns | undefined;
  /** By other process: messages arrived about all of its turns up to this number, and the time of the last message. */
  readonly others: Map<string, { readonly begun: number; readonly at: number }>;
  /** Turns elsewhere of which the last connection that left was sent a part: with how many events. */
  leftElsewhere: readonly ListedTurn[];
  /** While it has connections, it receives messages about turns that execute elsewhere. */
  following: Following | undefined;
  expiry: ports.Timer | undefined;
}

/** The subscription of a subscriber to turns that execute elsewhere. */
export interface Following {
  readonly subscription: ports.BusSubscription;
  /** Resolves when messages arrive, or after a maximum wait. */
  readonly isUp: Promise<void>;
  poll: ports.Timer | undefined;
}

/** Names this process and counts its turns. */
export interface Counted {
  readonly processId: string;
  readonly begun: number;
}

/** The resume point of a client that is new here or presents no resume point. Turns elsewhere that had ended by `since` are not sent to it. */
export function firstResumePoint(
  { processId, begun }: Counted,
  subscriber: Subscriber | undefined,
  now: number | undefined,
  since: number | undefined,
): string {
  // With another connection still open, this may be the same client, and the other connection dead. Events sent on that one may never
  // arrive.
  const isAlone = subscriber?.connections.length === 0;
  const open = (subscriber?.watched ?? [])
    .filter(({ isEnded, left, transcript }) => !(isEnded && isAlone && left >= transcript.position))
    .map(({ clientRequestId, processId: where, number, left }) => ({
      ...{ clientRequestId, processId: where, number },
      count: isAlone ? left : 0,
    }));
  open.push(...(subscriber?.leftElsewhere ?? []));
  return formatResumePoint({ processId, begun, open, others: subscriber ? othersOf(subscriber, now) : [], since });
}

/** The resume point of a client that has received everything that was sent to its connection. */
export function resumePointOf(
  { processId, begun }: Counted,
  subscriber: Subscriber,
  connection: Connection,
  now: number | undefined,
): string {
  const { watched, ended } = subscriber;
  const open: ListedTurn[] = [];
  for (const { clientRequestId, processId: where, number, isEnded, transcript } of watched) {
    const count = connection.behindOn(clientRequestId) ?? (isEnded ? undefined : transcript.position);
    if (count !== undefined) open.push({ clientRequestId, processId: where, number, count });
    // One more than a resume point can list. It shows where the list ends.
    if (connection.isLevel && open.length > RESUME_POINT_TURNS) break;
  }
  for (const [clientRequestId, count] of connection.behind) {
    if (watched.some((each) => each.clientRequestId === clientRequestId)) continue;
    open.push({ clientRequestId, processId, number: 0, ...ended?.find(clientRequestId), count });
  }
  // Events that were not looked up yet may be missing: the client keeps the resume point that it presented.
  const start = connection.start?.resumePoint;
  const others = start ? [...start.begun].filter(([each]) => each !== processId) : othersOf(subscriber, now);
  return formatResumePoint({ processId, begun, open, others, since: start?.since });
}

/** Whether everything that a client at this resume point misses is there. */
export function isRemembered(subscriber: Subscriber | undefined, { processId, begun, numbered }: ResumePoint): boolean {
  if (!subscriber) return false;
  for (const [each, number] of subscriber.ended?.forgotten ?? []) {
    const upTo = begun.get(each);
    // A process whose last message is too old to count has sent nothing since.
    if (upTo === undefined ? each === processId || subscriber.others.has(each) : upTo < number) return false;
  }
  const turns = [...(subscriber.ended?.turns ?? []), ...subscriber.watched];
  const known = new Set(turns.map((turn) => `${turn.processId}#${turn.number}`));
  return [...numbered.keys()].every((key) => known.has(key));
}

/** Remember a turn that ended, for clients that come back for its end. */
export function remember(subscriber: Subscriber, turn: NumberedTurn, clock: ports.Clock): void {
  (subscriber.ended ??= new EndedTurns(clock)).remember(turn);
}

/** Record that messages arrived about all turns of a process up to this number. */
export function hearUpTo({ others }: Subscriber, processId: string, number: number, now: number): void {
  others.set(processId, { begun: Math.max(others.get(processId)?.begun ?? 0, number), at: now });
}

function othersOf({ others }: Subscriber, now = 0): readonly (readonly [string, number])[] {
  for (const [processId, { at }] of others) if (now - at > OTHERS_COUNTED_MS) others.delete(processId);
  return Array.from(others, ([processId, { begun }]) => [processId, begun] as const);
}

/** One client program of one user, with however many connections. */
export interface Listener {
  readonly userId: string;
  readonly clientInstanceId: string;
}

/** Names a listener in stores and for other processes, without revealing the user. Undefined for turns without a client. */
export function subscriberOf({ userId, clientInstanceId }: Listener): string | undefined {
  return clientInstanceId === "" ? undefined : hash("sha256", JSON.stringify([userId, clientInstanceId]), "base64url");
}

/** A turn of a subscriber, in messages between processes. */
export interface NamedTurn extends NumberedTurn {
  readonly turnId: string;
}

/** Messages between processes about a subscriber. All of them may be lost: everything that must last is in the log. */
export type SubscriberMessage =
  /** A turn sent an event. `upTo`: all turns up to this number, of that process and subscriber, have sent their first event. */
  | {
      readonly kind: "event";
      readonly turn: NamedTurn;
      readonly event: TurnEvent;
      readonly position: number;
      readonly size: number;
      readonly upTo: number;
    }
  /** Another process wrote the end of a turn whose process died. The turn sends no more events. */
  | { readonly kind: "closed"; readonly turn: NamedTurn }
  /** Something that is only worth knowing now, to all connections or to one. */
  | { readonly kind: "announced"; readonly event: TurnEvent; readonly socketId?: string | undefined };

/** The topic of a subscriber on the bus. */
export const subscriberTopic = (subscriber: string): string => `subscriber/${subscriber}`;
