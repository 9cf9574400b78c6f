import { ports } from "@portico/core";

/** The dependencies of Insistence. */
export interface InsistenceOptions {
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  /** Ends every call without its own signal. */
  readonly signal: AbortSignal;
  /** Called for every failure. */
  onFailure(error: unknown): void;
}

/** Pause between two attempts while the journal is unavailable. */
export const RETRY_MS = 1000;

/**
 * Retries calls to a journal while it is unavailable. Completed work must be recorded eventually, and new work can wait for its
 * record. Reports once that the journal is unavailable, and once that it is back.
 */
export class Insistence {
  readonly #options: InsistenceOptions;
  #isAway = false;

  constructor(options: InsistenceOptions) {
    this.#options = options;
  }

  /**
   * Returns the result of `ask`, or throws its error if the journal is available. Throws the given signal's reason when it ends
   * the wait.
   */
  async until<T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { clock, signal: closing, onFailure } = this.#options;
    for (;;) {
      try {
        // No other await in between: the first request must get the first answer.
        const answer = await ask();
        this.#back();
        return answer;
      } catch (error) {
        onFailure(error);
        if (!(error instanceof ports.EngineUnavailable) || closing.aborted) throw error;
        this.#away(error);
      }
      await clock.sleep(RETRY_MS, signal ?? closing);
    }
  }

  #away(error: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#options.log.error("The engine's journal is out of reach: work waits for it", {}, error);
  }

  #back(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#options.log.info("The engine's journal is back");
  }
}
