import type { Offer } from "./work-row.ts";

/**
 * The common queue of all processes: it brings each offer to one process. It may lose offers and bring them twice, because the
 * journal knows which work may begin.
 */
export interface Dispatcher {
  /** Add offers. Rejects if the queue is unavailable; some of them may have been added. */
  offer(offers: readonly Offer[]): Promise<void>;
  /** Those of the offers that are not in the queue. Rejects if it is unavailable. */
  missing(offers: readonly Offer[]): Promise<readonly Offer[]>;
  /** Begin to take offers of a kind. The returned function must be called when the consumer has room again. */
  consume(kind: string, consumer: OfferConsumer): () => void;
  /** Whether no offer of a consumed kind waits, as far as this process knows. True if the queue is unavailable. */
  isIdle(kind: string): boolean;
  /** Take no more offers. Others take those that are added after this has resolved. */
  stop(): Promise<void>;
  /** Stops, and adds no more offers. */
  close(): Promise<void>;
}

/** Takes offers of one kind. */
export interface OfferConsumer {
  hasRoom(): boolean;
  /** False if there is no room any more. The offer then goes to another process. */
  take(offer: Offer): boolean;
}
