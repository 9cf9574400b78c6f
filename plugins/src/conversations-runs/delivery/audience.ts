import type { NumberedTurn } from "./numbered-turn.ts";
import { hash } from "node:crypto";
import type { ports } from "@portico/core";
import { OTHERS_COUNTED_MS, PLACE_TURNS } from "../limits.ts";
import type { Transcript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { FollowedTranscript } from "./followed-transcript.ts";
import { KeptTurns } from "./kept-turns.ts";
import { formatPlace, type OpenTurn, type Place } from "./place.ts";
import type { Seat } from "./seat.ts";

/** One turn whose events an audience receives. */
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
export interface Audience {
  readonly key: string;
  readonly listener: Listener;
  /** Its topic on the bus; undefined where no client can come. */
  readonly topic: string | undefined;
  /** Hardly ever more than one. */
  seats: readonly Seat[];
  watched: readonly Watched[];
  /** Present from the first turn on that ended here. */
  kept: KeptTurns | undefined;
  /** By other process: messages arrived about all of its turns up to this number, and the time of the last message. */
  readonly others: Map<string, { readonly begun: number; readonly at: number }>;
  /** Turns elsewhere of which the last connection that left was sent a part: with how many events. */
  leftElsewhere: readonly OpenTurn[];
  /** While it has connections, it receives messages about turns that execute elsewhere. */
  following: Following | undefined;
  expiry: ports.Timer | undefined;
}

/** The subscription of an audience to turns that execute elsewhere. */
export interface Following {
  readonly subscription: ports.BusSubscription;
  /** Resolves when messages arrive, or after a maximum wait. */
  readonly isUp: Promise<void>;
  poll: ports.Timer | undefined;
}

/** Names this process and counts its turns. */
export interface Counted {
  readonly life: string;
  readonly begun: number;
}

/** The place of a client that is new here or presents no place. Turns elsewhere that had ended by `since` are not sent to it. */
export function firstPlace(
  { life, begun }: Counted,
  audience: Audience | undefined,
  now: number | undefined,
  since: number | undefined,
): string {
  // With another connection still open, this may be the same client, and the other connection dead. Events sent on that one may never
  // arrive.
  const isAlone = audience?.seats.length === 0;
  const open = (audience?.watched ?? [])
    .filter(({ isEnded, left, transcript }) => !(isEnded && isAlone && left >= transcript.position))
    .map(({ clientRequestId, life: where, number, left }) => ({
      ...{ clientRequestId, life: where, number },
      count: isAlone ? left : 0,
    }));
  open.push(...(audience?.leftElsewhere ?? []));
  return formatPlace({ life, begun, open, others: audience ? othersOf(audience, now) : [], since });
}

/** The place of a client that has received everything that was sent to its connection. */
export function placeOf({ life, begun }: Counted, audience: Audience, seat: Seat, now: number | undefined): string {
  const { watched, kept } = audience;
  const open: OpenTurn[] = [];
  for (const { clientRequestId, life: where, number, isEnded, transcript } of watched) {
    const count = seat.behindOn(clientRequestId) ?? (isEnded ? undefined : transcript.position);
    if (count !== undefined) open.push({ clientRequestId, life: where, number, count });
    // One more than a place can list. It shows where the list ends.
    if (seat.isLevel && open.length > PLACE_TURNS) break;
  }
  for (const [clientRequestId, count] of seat.behind) {
    if (watched.some((each) => each.clientRequestId === clientRequestId)) continue;
    open.push({ clientRequestId, life, number: 0, ...kept?.find(clientRequestId), count });
  }
  // Events that were not looked up yet may be missing: the client keeps the place that it presented.
  const start = seat.start?.place;
  const others = start ? [...start.begun].filter(([each]) => each !== life) : othersOf(audience, now);
  return formatPlace({ life, begun, open, others, since: start?.since });
}

/** Whether everything that a client at this place misses is there. */
export function isRemembered(audience: Audience | undefined, { life, begun, numbered }: Place): boolean {
  if (!audience) return false;
  for (const [each, number] of audience.kept?.forgotten ?? []) {
    const upTo = begun.get(each);
    // A process whose last message is too old to count has sent nothing since.
    if (upTo === undefined ? each === life || audience.others.has(each) : upTo < number) return false;
  }
  const turns = [...(audience.kept?.turns ?? []), ...audience.watched];
  const known = new Set(turns.map((turn) => `${turn.life}#${turn.number}`));
  return [...numbered.keys()].every((key) => known.has(key));
}

/** Remember a turn that ended, for clients that come back for its end. */
export function keep(audience: Audience, turn: NumberedTurn, clock: ports.Clock): void {
  (audience.kept ??= new KeptTurns(clock)).keep(turn);
}

/** Record that messages arrived about all turns of a process up to this number. */
export function hearUpTo({ others }: Audience, life: string, number: number, now: number): void {
  others.set(life, { begun: Math.max(others.get(life)?.begun ?? 0, number), at: now });
}

function othersOf({ others }: Audience, now = 0): readonly (readonly [string, number])[] {
  for (const [life, { at }] of others) if (now - at > OTHERS_COUNTED_MS) others.delete(life);
  return Array.from(others, ([life, { begun }]) => [life, begun] as const);
}

/** One client program of one user, with however many connections. */
export interface Listener {
  readonly userId: string;
  readonly clientInstanceId: string;
}

/** Names a listener in stores and for other processes, without revealing the user. Undefined for turns without a client. */
export function audienceOf({ userId, clientInstanceId }: Listener): string | undefined {
  return clientInstanceId === "" ? undefined : hash("sha256", JSON.stringify([userId, clientInstanceId]), "base64url");
}

/** A turn of an audience, in messages between processes. */
export interface NamedTurn extends NumberedTurn {
  readonly turnId: string;
}

/** Messages between processes about an audience. All of them may be lost: everything that must last is in the log. */
export type AudienceMessage =
  /** A turn sent an event. `upTo`: all turns up to this number, of that process and audience, have sent their first event. */
  | {
      readonly kind: "told";
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

/** The topic of an audience on the bus. */
export const audienceTopic = (audience: string): string => `audience/${audience}`;
