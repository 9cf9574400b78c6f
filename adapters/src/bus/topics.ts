import type { ports } from "@portico/core";

/** A subscription as the process that has it keeps it. */
export interface Seat {
  readonly topic: string;
  readonly listener: ports.BusListener;
  isOpen: boolean;
}

/** The subscriptions of one process, by topic. */
export class Topics {
  readonly #seats = new Map<string, Set<Seat>>();
  readonly #log: ports.Log;

  constructor(log: ports.Log) {
    this.#log = log;
  }

  /** Every topic with a subscription. */
  get names(): readonly string[] {
    return [...this.#seats.keys()];
  }

  has(topic: string): boolean {
    return this.#seats.has(topic);
  }

  add(topic: string, listener: ports.BusListener): Seat {
    const seat = { topic, listener, isOpen: true };
    const seats = this.#seats.get(topic) ?? new Set();
    this.#seats.set(topic, seats.add(seat));
    return seat;
  }

  remove(seat: Seat): void {
    seat.isOpen = false;
    const seats = this.#seats.get(seat.topic);
    seats?.delete(seat);
    if (seats?.size === 0) this.#seats.delete(seat.topic);
  }

  /** Tell a message to those that are subscribed now, after the current call. Undefined: they missed messages. */
  tell(topic: string, text: string | undefined): void {
    const seats = this.#seats.get(topic);
    if (!seats) return;
    const heard = [...seats];
    queueMicrotask(() => {
      if (text === undefined) return this.#callEach(heard, (listener) => listener.missed());
      let message: unknown;
      try {
        message = JSON.parse(text);
      } catch (error) {
        this.#log.error("A message of the bus is not JSON", {}, error);
        return;
      }
      this.#callEach(heard, (listener) => listener.received(message));
    });
  }

  close(): void {
    for (const seats of this.#seats.values()) for (const seat of seats) seat.isOpen = false;
    this.#seats.clear();
  }

  #callEach(seats: readonly Seat[], call: (listener: ports.BusListener) => unknown): void {
    for (const seat of seats) {
      if (!seat.isOpen) continue;
      // The rejection of an asynchronous listener would end the process.
      void Promise.try(call, seat.listener).catch((error: unknown) => this.#log.error("A listener of the bus failed", {}, error));
    }
  }
}
