import { upstreamFailure } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import type { ModelEvent } from "../model-events.ts";

/** What one protocol makes of the JSON events of a stream; `stream-reader.ts` feeds it, whatever the transport. */
export interface AnswerReader {
  /** Takes one event of the stream, in order. */
  read(event: JsonObject, name: string | undefined): void;
  /**
   * Ends the stream. Emits `usage` and `finish`, or the `error` of an incomplete answer. `marked`: an end marker was seen.
   */
  close(marked: boolean): void;
  /** Whether an event of this name belongs to the protocol, so that data which is not JSON breaks the answer. */
  knows(name: string): boolean;
}

/** Takes the next event of an answer. What comes after a `finish` or an `error` is ignored. */
export type Emit = (event: ModelEvent) => void;

/** Where a reader's events gather until they are handed on. */
export interface Gathering {
  readonly emit: Emit;
  readonly over: boolean;
  /** The events since the last call. */
  drain(): readonly ModelEvent[];
  /** Runs a step of the reading; an answer nested deeper than the stack becomes an `error` instead of an exception. */
  attempt(step: () => void): void;
}

const NOTHING: readonly ModelEvent[] = [];

/** Gathers the events of one answer. */
export function gatherEvents(): Gathering {
  let events: ModelEvent[] = [];
  let over = false;

  const emit: Emit = (event) => {
    if (over) return;
    events.push(event);
    over = event.type === "finish" || event.type === "error";
  };

  return {
    emit,
    get over() {
      return over;
    },
    drain() {
      if (events.length === 0) return NOTHING;
      const drained = events;
      events = [];
      return drained;
    },
    attempt(step) {
      try {
        step();
      } catch (error) {
        // JSON.parse takes any depth, JSON.stringify runs out of stack.
        if (!(error instanceof RangeError)) throw error;
        emit(upstreamFailure("The provider's answer is nested too deeply."));
      }
    },
  };
}
