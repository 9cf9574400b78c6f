import type { ports } from "@portico/core";

/** The execution to which a branch belongs. */
export interface BranchedExecution extends ports.WorkContext {
  /** One more branch does something by itself, or one fewer. */
  countBusy(change: 1 | -1): void;
}

/** The context of one branch. It tells the execution whether the branch does something outside of its requests and its own branches. */
export class Branch implements ports.WorkContext {
  readonly #execution: BranchedExecution;
  /** Its unanswered requests, and its branches. */
  #requests = 0;
  #over = false;

  constructor(execution: BranchedExecution) {
    this.#execution = execution;
    execution.countBusy(1);
  }

  get id(): string {
    return this.#execution.id;
  }

  get attempt(): number {
    return this.#execution.attempt;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  get held(): ports.Write {
    return this.#execution.held;
  }

  readonly beginWith: ports.WorkContext["beginWith"] = (run) => this.#execution.beginWith(run);

  readonly endWith: ports.WorkContext["endWith"] = (run) => this.#execution.endWith(run);

  // Own properties, because functions often destructure their context.
  readonly step: ports.WorkContext["step"] = (name, run, options) =>
    this.#request(() => this.#execution.step(name, run, options));

  readonly sleep: ports.WorkContext["sleep"] = (name, ms) => this.#request(() => this.#execution.sleep(name, ms));

  readonly waitFor: ports.WorkContext["waitFor"] = (name, options) => this.#request(() => this.#execution.waitFor(name, options));

  readonly branch: ports.WorkContext["branch"] = (run) => this.#request(() => this.#execution.branch(run));

  readonly earlier: ports.WorkContext["earlier"] = () => this.#execution.earlier();

  /** The branch has returned or thrown. A request of it that is still running no longer counts for it. */
  end(): void {
    if (this.#requests === 0) this.#execution.countBusy(-1);
    this.#over = true;
  }

  #request<T>(request: () => Promise<T>): Promise<T> {
    if (this.#requests++ === 0) this.#execution.countBusy(-1);
    const answered = (): void => {
      if (--this.#requests === 0 && !this.#over) this.#execution.countBusy(1);
    };
    const answer = request().finally(answered);
    // A branch that lost a race must not end the process when its work is cancelled.
    answer.catch(() => {});
    return answer;
  }
}
