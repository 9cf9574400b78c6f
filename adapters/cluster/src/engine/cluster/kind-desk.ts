import type { Kind } from "@portico/adapters/engine/kind";
import { type Reservation, type Seat, Seats } from "@portico/adapters/engine/seats";
import type { OfferConsumer } from "./dispatcher.ts";
import type { Offer } from "./work-row.ts";

/** The dependencies of a desk. */
export interface KindDeskGiven {
  readonly kind: Kind;
  /** Whether this process may begin work now. */
  mayBegin(): boolean;
  /** Begin and execute offered work. Its seat is free again when this resolves. Never rejects. */
  execute(kind: Kind, offer: Offer, seat: Seat): Promise<void>;
  onLeave(): void;
}

/** How many offers wait here while the common queue is unavailable. Later offers wait in the journal alone. */
const KEPT = 1000;

/** Where work of one kind gets a seat in this process. */
export class KindDesk implements OfferConsumer {
  readonly kind: Kind;
  readonly #given: KindDeskGiven;
  readonly #seats: Seats;
  /** Offers that could not be put into the common queue. */
  #kept: Offer[] = [];
  #onRoom = (): void => {};

  constructor(given: KindDeskGiven) {
    this.kind = given.kind;
    this.#given = given;
    this.#seats = new Seats({ limit: given.kind.concurrency, onFree: () => this.#fill(), onLeave: () => given.onLeave() });
  }

  /** Number of executing works, without those that wait. */
  get taken(): number {
    return this.#seats.taken;
  }

  /** `onRoom` is called each time when there may be room. */
  open(onRoom: () => void): void {
    this.#onRoom = onRoom;
    this.#seats.open();
  }

  /** Begin no more work. Returns the offers that wait here. */
  close(): readonly Offer[] {
    this.#seats.close();
    return this.#kept.splice(0);
  }

  /** There may be room again. */
  pump(): void {
    this.#seats.pump();
  }

  hasRoom(): boolean {
    return this.#seats.isFree && this.#given.mayBegin() && this.#kept.length === 0;
  }

  /** A seat for work that does not exist yet. */
  reserve(): Reservation | undefined {
    return this.hasRoom() ? this.#seats.reserve() : undefined;
  }

  take(offer: Offer): boolean {
    const seat = this.#given.mayBegin() ? this.#seats.reserve() : undefined;
    seat?.begin((taken) => this.#given.execute(this.kind, offer, taken));
    return seat !== undefined;
  }

  /** Begin the works here, as soon as there is room. */
  keep(offers: readonly Offer[]): void {
    this.#kept.push(...offers.slice(0, Math.max(0, KEPT - this.#kept.length)));
    this.#seats.pump();
  }

  #fill(): void {
    while (this.#kept[0] && this.take(this.#kept[0])) this.#kept.shift();
    if (this.hasRoom()) this.#onRoom();
  }
}
