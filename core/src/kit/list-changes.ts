import { hash } from "node:crypto";
import type { Bus, BusSubscription } from "../ports/bus.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import { isStoreAway } from "./store-calls.ts";

/** Readers of one list at the same time, in one process. Each of them reads the list again after a change. */
export const LIST_READERS = 64;
/** Of them, readers of one caller: a caller cannot keep the others out. */
const READERS_OF_ONE = LIST_READERS / 2;
/** How long a reader waits after a hint: several changes at the same time are one, and the change is stored by then. */
const SETTLE_MS = 200;
/** Hints may be lost. Then a list is read again after this time. */
const LOOK_AGAIN_MS = 3000;

/** What a reader sees of a list. */
export interface ListLook {
  /** The ids of the entries in their order. */
  readonly ids: readonly string[];
  /** There are entries after these. */
  readonly hasMore: boolean;
}

/** A list as it is now. Two equal lists have the same id, in every process. */
export interface ChangedList {
  readonly id: string;
  readonly count: number;
  readonly hasMore: boolean;
}

/** Tells the readers of a list in all processes when it has changed. Each reader is only told of the entries that it may see. */
export class ListChanges {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #topic: string;
  /** The readers of this process, with their callers. */
  readonly #readers = new Map<() => void, string>();

  /** `topic` names the list on the bus. */
  constructor({ bus, clock, topic }: { readonly bus: Bus; readonly clock: Clock; readonly topic: string }) {
    this.#bus = bus;
    this.#clock = clock;
    this.#topic = topic;
  }

  /** Whether as many readers follow the list as may do so, in all or of this caller. */
  isFull(caller = ""): boolean {
    if (this.#readers.size >= LIST_READERS) return true;
    const own = this.#readers.values().filter((each) => each === caller);
    return caller !== "" && own.toArray().length >= READERS_OF_ONE;
  }

  /** The list has changed, or is about to. */
  notify(): void {
    for (const hear of this.#readers.keys()) hear();
    this.#bus.publish(this.#topic, null, { toOthers: true });
  }

  /**
   * The list as it is now, and again after each change that the reader can see, until the signal aborts. A reader that already has the list with
   * the id `known` is told only of the next change. Rejects if the first look fails. Later looks are repeated while the store is unavailable.
   */
  async *follow(given: {
    readonly look: () => Promise<ListLook>;
    readonly known: string | undefined;
    readonly signal: AbortSignal;
    /** Who reads. Absent: callers are not told apart. */
    readonly caller?: string | undefined;
  }): AsyncGenerator<ChangedList, void> {
    const { look, signal, caller = "" } = given;
    let { known } = given;
    let wake = (): void => {};
    let hasNews = false;
    const hear = (): void => {
      hasNews = true;
      wake();
    };
    this.#readers.set(hear, caller);
    signal.addEventListener("abort", hear, { once: true });
    let subscription: BusSubscription | undefined;
    let isFirst = true;
    try {
      subscription = this.#bus.subscribe(this.#topic, { received: hear, missed: hear });
      // Changes before then were not reported.
      void subscription.active.then((isActive) => isActive && hear());
      while (!signal.aborted) {
        hasNews = false;
        const seen = await look().catch((error: unknown) => {
          if (isFirst || !isStoreAway(error)) throw error;
          return undefined;
        });
        isFirst = false;
        const list = seen && toChangedList(seen);
        if (list && list.id !== known) {
          known = list.id;
          yield list;
        }
        if (!hasNews) await this.#pause(LOOK_AGAIN_MS, (woken) => (wake = woken));
        if (hasNews && !signal.aborted) await this.#pause(SETTLE_MS, () => {});
      }
    } finally {
      signal.removeEventListener("abort", hear);
      this.#readers.delete(hear);
      subscription?.close();
    }
  }

  /** Ends after this time, or when the function that `begun` gets is called. */
  async #pause(ms: number, begun: (end: () => void) => void): Promise<void> {
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      timer = this.#clock.after(ms, resolve);
      begun(resolve);
    });
    timer?.cancel();
  }
}

function toChangedList({ ids, hasMore }: ListLook): ChangedList {
  const id = hash("sha256", JSON.stringify([ids, hasMore]), "base64url").slice(0, 22);
  return { id, count: ids.length, hasMore };
}
