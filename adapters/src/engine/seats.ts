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

/** The dependencies of the seats of one kind. */
export interface SeatsOptions {
  /** Maximum works executing at once. */
  readonly limit: number;
  /** Seats may be free for work that has not begun. */
  onFree(): void;
  /** A seat was left. */
  onLeave(): void;
}

/** The seats of one kind in one process. Work that returns from a wait gets a seat before work that has not begun. */
export class Seats {
  readonly #options: SeatsOptions;
  readonly #returning = new Set<() => void>();
  #taken = 0;
  #isOpen = false;

  constructor(options: SeatsOptions) {
    this.#options = options;
  }

  /** Number of executing works, without those that wait. */
  get taken(): number {
    return this.#taken;
  }

  /** Whether work that has not begun may take a seat. */
  get isFree(): boolean {
    return this.#isOpen && this.#taken < this.#options.limit && this.#returning.size === 0;
  }

  open(): void {
    this.#isOpen = true;
    this.pump();
  }

  /** No work begins or continues after this. */
  close(): void {
    this.#isOpen = false;
  }

  /** Give free seats to returning works, and then to others. */
  pump(): void {
    while (this.#isOpen && this.#taken < this.#options.limit) {
      const [back] = this.#returning;
      if (!back) return this.#options.onFree();
      this.#returning.delete(back);
      this.#taken++;
      back();
    }
  }

  /** A seat, if one is free. */
  reserve(): Reservation | undefined {
    if (!this.isFree) return undefined;
    this.#taken++;
    return {
      begin: (execute) => void this.#run(execute),
      release: () => this.#leave(),
    };
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
}
