import type { TextProblem } from "./stored-text.ts";

/** What the service says about a text. */
export interface CheckedText<D> {
  readonly problems: readonly TextProblem[];
  /** The meaning of a text without errors. */
  readonly definition?: D | undefined;
}

/** The author is still writing before this time. */
const QUIET_MS = 300;

/** Lets the service check a text while it is being written. */
export class TextCheck<D = never> {
  problems = $state.raw<readonly TextProblem[]>([]);
  /** Of the last text without errors. */
  definition = $state.raw<D>();
  /** Why the last text could not be checked. */
  failure = $state.raw<unknown>();
  /** The text to which `problems` belong. */
  #checked = $state.raw("");
  readonly #check: (text: string, signal: AbortSignal) => Promise<CheckedText<D>>;

  /** `first`: the text that is checked already, and its answer. */
  constructor(
    check: (text: string, signal: AbortSignal) => Promise<CheckedText<D>>,
    first: { readonly text: string; readonly answer: CheckedText<D> },
  ) {
    this.#check = check;
    this.#take(first.text, first.answer);
  }

  get errorCount(): number {
    return this.problems.filter(({ severity }) => severity === "error").length;
  }

  isOf(text: string): boolean {
    return this.#checked === text;
  }

  /** Checks the text soon. Returns how to stop that. */
  follow(text: string): () => void {
    const stopping = new AbortController();
    const timer = this.isOf(text) ? undefined : setTimeout(() => void this.run(text, stopping.signal), QUIET_MS);
    return () => {
      clearTimeout(timer);
      stopping.abort();
    };
  }

  /** Checks the text now. Failures are in `failure`. */
  async run(text: string, signal: AbortSignal): Promise<void> {
    try {
      const answer = await this.#check(text, signal);
      if (!signal.aborted) this.#take(text, answer);
    } catch (error) {
      if (!signal.aborted) this.failure = error;
    }
  }

  #take(text: string, { problems, definition }: CheckedText<D>): void {
    [this.#checked, this.problems, this.failure] = [text, problems, undefined];
    this.definition = definition ?? this.definition;
  }
}
