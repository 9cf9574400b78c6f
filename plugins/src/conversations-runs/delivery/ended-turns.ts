import type { ports } from "@portico/core";
import { ENDED_TURNS_MS, ENDED_TURNS } from "../limits.ts";
import type { NumberedTurn } from "./numbered-turn.ts";

interface EndedTurn extends NumberedTurn {
  /** When it may be forgotten, in milliseconds since 1970. */
  readonly until: number;
}

/**
 * Turns that have ended and were sent completely, to connections that may have been dead. Their events stay in their transcripts. The ID
 * and the number of each turn are kept here for a while.
 */
export class EndedTurns {
  readonly #turns = new Map<string, EndedTurn>();
  readonly #clock: ports.Clock;
  #timer: ports.Timer | undefined;
  /** By process, the highest number of a turn that was forgotten. */
  readonly #forgotten = new Map<string, number>();

  constructor(clock: ports.Clock) {
    this.#clock = clock;
  }

  get forgotten(): Iterable<readonly [processId: string, number: number]> {
    return this.#forgotten;
  }

  /** Remember a turn from now on; also one that a client has just come back for. */
  remember({ clientRequestId, processId, number }: NumberedTurn): void {
    this.#turns.delete(clientRequestId);
    this.#turns.set(clientRequestId, { clientRequestId, processId, number, until: this.#clock.now() + ENDED_TURNS_MS });
    if (this.#turns.size > ENDED_TURNS) this.#forgetFirst();
    this.#timer ??= this.#clock.after(ENDED_TURNS_MS, () => this.#forgetOld());
  }

  find(clientRequestId: string): NumberedTurn | undefined {
    return this.#turns.get(clientRequestId);
  }

  /** In the order in which they began, for each process. */
  get turns(): readonly NumberedTurn[] {
    return [...this.#turns.values()].sort((a, b) => a.number - b.number);
  }

  clear(): void {
    while (this.#turns.size > 0) this.#forgetFirst();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #forgetOld(): void {
    const now = this.#clock.now();
    for (const { until } of this.#turns.values()) {
      if (until > now) {
        this.#timer = this.#clock.after(until - now, () => this.#forgetOld());
        return;
      }
      this.#forgetFirst();
    }
    this.#timer = undefined;
  }

  #forgetFirst(): void {
    const [first] = this.#turns.values();
    if (!first) return;
    this.#turns.delete(first.clientRequestId);
    this.#forgotten.set(first.processId, Math.max(this.#forgotten.get(first.processId) ?? 0, first.number));
  }
}
