import type { TurnEvent } from "../turns/turn.ts";
import type { NumberedTurn } from "./numbered-turn.ts";

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
