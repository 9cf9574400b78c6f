import type { Note } from "./journal.ts";

/** The signals of one executing work: each goes to one wait of its name, in the order in which they came. */
export class SignalBox {
  /** Came and not waited for yet. */
  readonly #kept = new Map<string, Note[]>();
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Numbers are given in order, so that a signal that was loaded and then told is known by it. */
  readonly #lastNumber = new Map<string, number>();

  /** Take a signal in, and tell the first who waits for it that there is one. */
  put(note: Note): void {
    if (note.number <= (this.#lastNumber.get(note.name) ?? 0)) return;
    this.#lastNumber.set(note.name, note.number);
    this.#listOf(note.name).push(note);
    const [first] = this.#waiting.get(note.name) ?? [];
    first?.();
  }

  /** The oldest kept signal of a name. */
  take(name: string): Note | undefined {
    const kept = this.#kept.get(name);
    const note = kept?.shift();
    if (kept?.length === 0) this.#kept.delete(name);
    return note;
  }

  /** Call `told` when a signal of the name comes. The answer stops it. */
  wait(name: string, told: () => void): () => void {
    const waiting = this.#waiting.get(name) ?? new Set();
    this.#waiting.set(name, waiting.add(told));
    return () => {
      waiting.delete(told);
      if (waiting.size === 0) this.#waiting.delete(name);
    };
  }

  #listOf(name: string): Note[] {
    const kept = this.#kept.get(name) ?? [];
    this.#kept.set(name, kept);
    return kept;
  }
}
