import type { Place } from "./journal.ts";

/** Places that are loaded at once. The others stay in the journal until these have begun. Returned work may double them. */
const WINDOW = 256;

/** The dependencies of the queue of one kind. */
export interface KindLineOptions {
  /** Maximum works executing at once. */
  readonly limit: number;
  /** The next places after `after`, in order. */
  load(after: number, limit: number): readonly Place[];
  /** Execute the work at a place. Its seat is free again when this resolves. Never rejects. */
  execute(place: Place, seat: Seat): Promise<void>;
  /** A seat became free. */
  onLeave(): void;
  /** The journal could not be read. Call `pump` later. */
  onUnreadable(error: unknown): void;
}

/** Permission to execute. The number of seats limits how many works execute at once. */
export interface Seat {
  readonly taken: boolean;
  /** Release the seat while the work waits. */
  leave(): void;
  /**
   * Wait for a seat, before all work that has not begun. Resolves without a seat when `signal` aborts, because the rest must end.
   */
  enter(signal: AbortSignal): Promise<void>;
}

/** A seat for work that does not exist yet. Call exactly one of the two. */
export interface Reservation {
  /** The work exists and has begun. Its seat is free again when `execute` resolves, which never rejects. */
  begin(execute: (seat: Seat) => Promise<void>): void;
  release(): void;
}

/** Decides which works of one kind execute. The journal holds the queue; this class holds a window on its head. */
export class KindLine {
  readonly #options: KindLineOptions;
  readonly #next: Place[] = [];
  readonly #returning = new Set<() => void>();
  /** The last place that was loaded or added in order. */
  #cursor = Number.MIN_SAFE_INTEGER;
  /** Whether the journal has places after the cursor. */
  #more = true;
  #taken = 0;
  #open = false;

  constructor(options: KindLineOptions) {
    this.#options = options;
  }

  /** Number of executing works, without those that wait. */
  get executing(): number {
    return this.#taken;
  }

  open(): void {
    this.#open = true;
    this.pump();
  }

  /** No work begins or continues after this. */
  close(): void {
    this.#open = false;
  }

  /** A work was queued durably. */
  add(place: Place): void {
    if (place.place <= this.#cursor) this.#insert(place);
    else if (this.#more || this.#next.length >= WINDOW) this.#more = true;
    else {
      this.#next.push(place);
      this.#cursor = place.place;
    }
    this.pump();
  }

  /** Undefined if other work must begin first, or no work may begin. */
  reserve(): Reservation | undefined {
    const isFree = this.#open && this.#taken < this.#options.limit;
    if (!isFree || this.#more || this.#next.length > 0 || this.#returning.size > 0) return undefined;
    this.#taken++;
    return {
      begin: (execute) => void this.#run(execute),
      release: () => this.#leave(),
    };
  }

  /** Begin all work that may begin. */
  pump(): void {
    while (this.#open && this.#taken < this.#options.limit) {
      const [back] = this.#returning;
      if (back) {
        this.#returning.delete(back);
        this.#taken++;
        back();
        continue;
      }
      const next = this.#takeNext();
      if (!next) return;
      this.#taken++;
      void this.#run((seat) => this.#options.execute(next, seat));
    }
  }

  /**
   * Insert a place that the window has passed: the work returned to the head of the queue, or only its promise was late. It may
   * also be loaded already, which is noticed when it begins.
   */
  #insert(place: Place): void {
    const behind = this.#next.findLastIndex((other) => other.place <= place.place);
    this.#next.splice(behind + 1, 0, place);
    if (this.#next.length < WINDOW * 2) return;
    this.#next.length = WINDOW;
    this.#cursor = this.#next.at(-1)?.place ?? this.#cursor;
    this.#more = true;
  }

  async #run(execute: (seat: Seat) => Promise<void>): Promise<void> {
    let seated = true;
    let over = false;
    const leave = (): void => {
      if (!seated) return;
      seated = false;
      this.#leave();
    };
    const enter = (signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => {
        if (seated || signal.aborted) return resolve();
        const stop = (): void => {
          this.#returning.delete(back);
          resolve();
        };
        const back = (): void => {
          signal.removeEventListener("abort", stop);
          // Two waits of one work may end at once, and the work itself may end first.
          if (seated || over) this.#taken--;
          else seated = true;
          resolve();
        };
        signal.addEventListener("abort", stop, { once: true });
        this.#returning.add(back);
        this.pump();
      });
    const seat = {
      get taken() {
        return seated;
      },
      leave,
      enter,
    };
    await execute(seat);
    over = true;
    leave();
  }

  #leave(): void {
    this.#taken--;
    this.pump();
    this.#options.onLeave();
  }

  #takeNext(): Place | undefined {
    if (this.#next.length === 0 && this.#more) this.#load();
    return this.#next.shift();
  }

  #load(): void {
    try {
      const loaded = this.#options.load(this.#cursor, WINDOW);
      this.#next.push(...loaded);
      this.#cursor = loaded.at(-1)?.place ?? this.#cursor;
      this.#more = loaded.length === WINDOW;
    } catch (error) {
      this.#options.onUnreadable(error);
    }
  }
}
