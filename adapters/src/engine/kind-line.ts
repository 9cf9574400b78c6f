import type { Place } from "./journal.ts";

/** How many places are held in memory; the others stay in the journal until these have begun. */
const WINDOW = 256;

export interface KindLineOptions {
  /** How many may execute at once. */
  readonly limit: number;
  /** The next places behind `after`, in order. */
  load(after: number, limit: number): readonly Place[];
  /** Execute the work at a place; its seat is free again when this resolves. Never rejects. */
  execute(place: Place, seat: Seat): Promise<void>;
  /** A seat was given up. */
  onLeave(): void;
  /** The journal could not be read; `pump` is to be called later. */
  onUnreadable(error: unknown): void;
}

/** What executing work sits on: as many as may execute at once. */
export interface Seat {
  readonly taken: boolean;
  /** Give the seat up while the work waits. */
  leave(): void;
  /** Wait for a seat; before all work that has not begun. Resolves without one when `signal` aborts: what is left has to end. */
  enter(signal: AbortSignal): Promise<void>;
}

/** A seat for work that is not there yet. One of the two is to be called. */
export interface Reservation {
  /** The work is there and has begun; its seat is free again when `execute` resolves, which never rejects. */
  begin(execute: (seat: Seat) => Promise<void>): void;
  release(): void;
}

/** Decides what of one kind executes. Waiting work stands in the journal; here is a window on the head of its line. */
export class KindLine {
  readonly #options: KindLineOptions;
  readonly #next: Place[] = [];
  readonly #returning = new Set<() => void>();
  /** The last place that was loaded or added in order. */
  #cursor = Number.MIN_SAFE_INTEGER;
  /** Whether the journal has places behind the cursor. */
  #more = true;
  #taken = 0;
  #open = false;

  constructor(options: KindLineOptions) {
    this.#options = options;
  }

  /** How many execute, those that wait not counted. */
  get executing(): number {
    return this.#taken;
  }

  open(): void {
    this.#open = true;
    this.pump();
  }

  /** Let nothing begin or go on any more. */
  close(): void {
    this.#open = false;
  }

  /** A work came into line, and is durable there. */
  add(place: Place): void {
    if (place.place <= this.#cursor) this.#insert(place);
    else if (this.#more || this.#next.length >= WINDOW) this.#more = true;
    else {
      this.#next.push(place);
      this.#cursor = place.place;
    }
    this.pump();
  }

  /** Undefined where something else is to begin first, or nothing may. */
  reserve(): Reservation | undefined {
    const isFree = this.#open && this.#taken < this.#options.limit;
    if (!isFree || this.#more || this.#next.length > 0 || this.#returning.size > 0) return undefined;
    this.#taken++;
    return {
      begin: (execute) => void this.#run(execute),
      release: () => this.#leave(),
    };
  }

  /** Let begin whatever may. */
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
   * Put in order what the window has passed: it comes back to the head of the line, or only its promise came late. It may have been loaded
   * too; whoever begins sees that.
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
          // Two waits of one work may be over at once, and the work itself before either.
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
