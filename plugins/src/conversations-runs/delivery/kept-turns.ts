import type { ports } from "@portico/core";
import { KEPT_MS, KEPT_TURNS } from "../limits.ts";

interface KeptTurn {
  readonly number: number;
  /** When it may be forgotten, in milliseconds since 1970. */
  readonly until: number;
}

/**
 * Turns that have ended and were sent in full, to connections that may have been dead. What they told stays in their transcripts; of each
 * turn its ID and its number are kept here, for a while.
 */
export class KeptTurns {
  readonly #turns = new Map<string, KeptTurn>();
  readonly #clock: ports.Clock;
  #timer: ports.Timer | undefined;
  #forgotten = 0;

  constructor(clock: ports.Clock) {
    this.#clock = clock;
  }

  /** The highest number of a turn that was forgotten; 0 for none. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Remember a turn from now on; also one that a client has just come back for. */
  keep(clientRequestId: string, number: number): void {
    this.#turns.delete(clientRequestId);
    this.#turns.set(clientRequestId, { number, until: this.#clock.now() + KEPT_MS });
    if (this.#turns.size > KEPT_TURNS) this.#forgetFirst();
    this.#timer ??= this.#clock.after(KEPT_MS, () => this.#forgetOld());
  }

  numberOf(clientRequestId: string): number | undefined {
    return this.#turns.get(clientRequestId)?.number;
  }

  /** In the order in which they began. */
  get turns(): readonly { readonly clientRequestId: string; readonly number: number }[] {
    const turns = Array.from(this.#turns, ([clientRequestId, { number }]) => ({ clientRequestId, number }));
    return turns.sort((a, b) => a.number - b.number);
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
    const [[clientRequestId, { number }] = ["", { number: 0 }]] = this.#turns;
    this.#turns.delete(clientRequestId);
    this.#forgotten = Math.max(this.#forgotten, number);
  }
}
