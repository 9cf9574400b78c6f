import type { Place } from "./journal.ts";
import { type Reservation, type Seat, Seats } from "./seats.ts";

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

/** Decides which works of one kind execute. The journal holds the queue; this class holds a window on its head. */
export class KindLine {
  readonly #options: KindLineOptions;
  readonly #seats: Seats;
  readonly #next: Place[] = [];
  /** The last place that was loaded or added in order. */
  #cursor = Number.MIN_SAFE_INTEGER;
  /** Whether the journal has places after the cursor. */
  #more = true;

  constructor(options: KindLineOptions) {
    this.#options = options;
    this.#seats = new Seats({ limit: options.limit, onFree: () => this.#beginNext(), onLeave: () => options.onLeave() });
  }

  /** Number of executing works, without those that wait. */
  get executing(): number {
    return this.#seats.taken;
  }

  open(): void {
    this.#seats.open();
  }

  /** No work begins or continues after this. */
  close(): void {
    this.#seats.close();
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
    return this.#more || this.#next.length > 0 ? undefined : this.#seats.reserve();
  }

  /** Begin all work that may begin. */
  pump(): void {
    this.#seats.pump();
  }

  #beginNext(): void {
    while (this.#seats.isFree) {
      const next = this.#takeNext();
      if (!next) return;
      this.#seats.reserve()?.begin((seat) => this.#options.execute(next, seat));
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
