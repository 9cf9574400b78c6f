import type { ports } from "@portico/core";
import type { Executions } from "./executions.ts";
import type { Hint } from "./work-change.ts";

/** Hints between processes: look into the journal, a work that you execute has a signal or was cancelled. */
export class HintLine {
  readonly #bus: ports.Bus;
  readonly #executions: Pick<Executions, "hint" | "hintAll">;
  #lease = 0;
  #subscription: ports.BusSubscription | undefined;

  constructor(bus: ports.Bus, executions: Pick<Executions, "hint" | "hintAll">) {
    this.#bus = bus;
    this.#executions = executions;
  }

  /** Hear hints for the owner of this lease. */
  listen(lease: number): void {
    if (lease === this.#lease) return;
    this.#lease = lease;
    this.#subscription?.close();
    this.#subscription = this.#bus.subscribe(topicOf(lease), {
      received: (work) => {
        if (typeof work === "number") this.#executions.hint(work);
      },
      missed: () => this.#executions.hintAll(),
    });
  }

  tell({ work, owner }: Hint): void {
    this.#bus.publish(topicOf(owner), work);
  }

  close(): void {
    this.#subscription?.close();
  }
}

/** Each process receives only hints about its own works. */
function topicOf(lease: number): string {
  return `engine/${lease}`;
}
