/** The connections that one signal ends. */
interface Held {
  readonly sockets: Set<string>;
  readonly end: () => void;
}

/**
 * Ends connections whose token has ended. The sockets of one token share one listener, because adding a listener to a signal takes longer
 * the more listeners it has.
 */
export class SocketLeases {
  readonly #drop: (socketId: string) => void;
  readonly #held = new Map<AbortSignal, Held>();

  constructor(drop: (socketId: string) => void) {
    this.#drop = drop;
  }

  /** The connection ends when `ended` aborts, at once if it has. */
  hold(socketId: string, ended: AbortSignal | undefined): void {
    if (!ended) return;
    if (ended.aborted) return this.#drop(socketId);
    const known = this.#held.get(ended);
    if (known) return void known.sockets.add(socketId);
    const sockets = new Set([socketId]);
    const end = () => {
      this.#held.delete(ended);
      for (const each of sockets) this.#drop(each);
    };
    this.#held.set(ended, { sockets, end });
    ended.addEventListener("abort", end, { once: true });
  }

  /** The connection has ended. */
  release(socketId: string, ended: AbortSignal | undefined): void {
    const held = ended && this.#held.get(ended);
    if (!held?.sockets.delete(socketId) || held.sockets.size > 0) return;
    this.#held.delete(ended!);
    ended!.removeEventListener("abort", held.end);
  }

  close(): void {
    for (const [ended, { end }] of this.#held) ended.removeEventListener("abort", end);
    this.#held.clear();
  }
}
