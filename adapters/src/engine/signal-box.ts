import type { Note } from "./journal.ts";

/** A place in the line for the signals of one name. */
export interface SignalWait {
  /** The signal, once there is one. */
  readonly note: Note | undefined;
  /** Called once, when there is one. */
  told: () => void;
  /** Let others have what comes from now on. */
  leave(): void;
}

/**
 * The signals of one executing work: each goes to one wait of its name, in the order in which they came; and of two waits the first has the
 * first, so that it has it again when the work is executed again and all of them are there already.
 */
export class SignalBox {
  /** Came and not waited for yet. */
  readonly #kept = new Map<string, Note[]>();
  readonly #waiting = new Map<string, Set<{ note: Note | undefined; told: () => void }>>();
  /** Numbers are given in order, so that a signal that was loaded and then told is known by it. */
  readonly #lastNumber = new Map<string, number>();
  #known = 0;

  /** The highest number of all that came. */
  get known(): number {
    return this.#known;
  }

  /** Take a signal in, and give it to the first who waits for it. */
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

  /** Stand in line for a signal; a kept one is there at once. */
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

  /** The oldest kept signal of a name. */
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
