import type { TurnEvent } from "../turns/turn.ts";
import type { NumberedTurn } from "./numbered-turn.ts";

/** A turn that an audience hears, as processes name it to each other. */
export interface NamedTurn extends NumberedTurn {
  readonly turnId: string;
}

/** What processes tell each other of an audience. Nothing of it is needed: everything that lasts is in the log. */
export type AudienceMessage =
  /** A turn told something. `upTo`: all turns up to this number, of that process and audience, have told their first event. */
  | {
      readonly kind: "told";
      readonly turn: NamedTurn;
      readonly event: TurnEvent;
      readonly position: number;
      readonly size: number;
      readonly upTo: number;
    }
  /** The end of a turn was written whose process died: it tells nothing more. */
  | { readonly kind: "closed"; readonly turn: NamedTurn }
  /** Something that is only worth knowing now, to all connections or to one. */
  | { readonly kind: "announced"; readonly event: TurnEvent; readonly socketId?: string | undefined };

/** The topic of an audience on the bus. */
export const audienceTopic = (audience: string): string => `audience/${audience}`;
