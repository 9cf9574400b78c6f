import type { Note } from "./journal.ts";

/** A place in the queue for signals of one name. */
export interface SignalWait {
  /** The signal, once it has arrived. */
  readonly note: Note | undefined;
  /** Called once, when the signal arrives. */
  told: () => void;
  /** Leave later signals to other waits. */
  leave(): void;
}

/**
 * The signals of one executing work. Each goes to one wait of its name, in order of arrival; the first wait gets the first
 * signal. The same assignment results when the work is executed again with all signals available.
 */
export class SignalBox {
  /** Arrived signals without a wait so far. */
  readonly #kept = new Map<string, Note[]>();
  readonly #waiting = new Map<string, Set<{ note: Note | undefined; told: () => void }>>();
  /** Numbers grow, so a signal that was loaded and is then reported again is recognised. */
  readonly #lastNumber = new Map<string, number>();
  #known = 0;

  /** The highest number of all arrived signals. */
  get known(): number {
    return this.#known;
  }

  /** Add a signal, and give it to the first wait for it. */
  put(note: Note): void {
    if (note.number <= (this.#lastNumber.get(note.name) ?? 0)) return;
    this.#lastNumber.set(note.name, note.number);
    this.#known = Math.max(this.#known, note.number);
    const [first] = this.#waiting.get(note.name) ?? [];
    if (!first) return void this.#listOf(note.name).push(note);
    this.#leave(note.name, first);
    first.note = note;
    first.told();
  }

  /** Wait for a signal. A stored signal is available at once. */
  wait(name: string): SignalWait {
    const leave = (): void => this.#leave(name, wait);
    const wait = { note: this.#take(name), told: () => {}, leave };
    if (!wait.note) this.#waiting.set(name, (this.#waiting.get(name) ?? new Set()).add(wait));
    return wait;
  }

  #leave(name: string, wait: { note: Note | undefined; told: () => void }): void {
    const waiting = this.#waiting.get(name);
    waiting?.delete(wait);
    if (waiting?.size === 0) this.#waiting.delete(name);
  }

  /** The oldest stored signal of a name. */
  #take(name: string): Note | undefined {
    const kept = this.#kept.get(name);
    const note = kept?.shift();
    if (kept?.length === 0) this.#kept.delete(name);
    return note;
  }

  #listOf(name: string): Note[] {
    const kept = this.#kept.get(name) ?? [];
    this.#kept.set(name, kept);
    return kept;
  }
}
