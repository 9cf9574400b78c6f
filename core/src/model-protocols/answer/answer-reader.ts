import { ANSWER_TOOL_CALLS } from "../../ports/models.ts";
import { upstreamFailure } from "../errors.ts";
import type { JsonObject } from "../json.ts";
import type { ModelEvent } from "../model-events.ts";

/** Reads the JSON events of one protocol's stream. `read-answer.ts` calls it. */
export interface AnswerReader {
  /** Takes one event of the stream, in order. */
  read(event: JsonObject, name: string | undefined): void;
  /**
   * Ends the stream. Emits `usage` and `finish`, or an `error` if the answer is incomplete. `marked`: the stream had an end marker.
   */
  close(marked: boolean): void;
  /** Whether an event of this name belongs to the protocol. In events with other names, invalid JSON is ignored. */
  knows(name: string): boolean;
}

/** Takes the next event of an answer. What comes after a `finish` or an `error` is ignored. */
export type Emit = (event: ModelEvent) => void;

/** Collects a reader's events until the caller takes them. */
export interface Gathering {
  readonly emit: Emit;
  readonly over: boolean;
  /** The events since the last call. */
  drain(): readonly ModelEvent[];
  /** Runs one step of reading. A stack overflow from a deeply nested answer becomes an `error` event instead of an exception. */
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
        // JSON.parse accepts any depth, but JSON.stringify can overflow the stack.
        if (!(error instanceof RangeError)) throw error;
        emit(upstreamFailure("The provider's answer is nested too deeply."));
      }
    },
  };
}

/**
 * Creates ids for tool calls if the upstream gave no id, or gave one id twice. They are derived from the answer's id. So they are unique in
 * a conversation, and the same answer always gets the same ids.
 */
export class AnswerToolIds {
  readonly #answerId: string;
  readonly #given = new Set<string>();

  constructor(answerId: string) {
    this.#answerId = answerId;
  }

  /** The id of the next call. `call` is its number; `id` is the upstream's id, or "". */
  next(call: number, id: string): string {
    const unique = id === "" || this.#given.has(id) ? `call_${this.#answerId}_${call}` : id;
    this.#given.add(unique);
    return unique;
  }
}

/** Says that a tool call is too many that begins after `begun` others. Undefined if the answer may have one more. */
export function toolCallLimit(begun: number): string | undefined {
  if (begun < ANSWER_TOOL_CALLS) return undefined;
  return `The provider's answer has more than ${ANSWER_TOOL_CALLS} tool calls.`;
}
