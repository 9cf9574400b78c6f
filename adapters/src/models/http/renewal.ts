import { ports } from "@portico/core";

/** A value that ends. */
export interface Ending<T> {
  readonly value: T;
  /** Milliseconds since 1970. Undefined for a value that does not end by itself. */
  readonly endsAt: number | undefined;
}

/** A value that is renewed before it ends. */
export interface Renewal<T> {
  /** The present value, or the next one if no value is valid. Rejects with ModelUnreachable, or with ModelTimeout if the source is silent. */
  current(): T | Promise<T>;
  /**
   * The upstream refused this value. Returns whether `current` will give another one: a new one is read after a refusal, at most once in 30
   * seconds.
   */
  refused(value: T): boolean;
}

/** A value is renewed this long before its end, while calls still use it. */
const EARLY_MS = 5 * 60_000;
/** Pause after a failed early renewal, and after a refused value. */
const RETRY_MS = 30_000;
/** Timeout of one reading: callers wait for it. */
const READING_MS = 60_000;

/**
 * Renews a credential once for all concurrent calls, and in the background while the present one is valid. `what` names the credential in
 * messages, which have only the name of the cause: its message may quote a secret.
 */
export function createRenewal<T>(what: string, read: () => Promise<Ending<T>>, clock: ports.Clock): Renewal<T> {
  let known: Ending<T> | undefined;
  let renewAt = 0;
  let refusedAt = -Infinity;
  let reading: Promise<T> | undefined;

  const renew = (): Promise<T> => {
    const silence = endOfWait(what, clock);
    const renewed = Promise.race([read(), silence.promise])
      .then((next) => {
        known = next;
        renewAt = next.endsAt === undefined ? Infinity : next.endsAt - EARLY_MS;
        // A value with a shorter life is not renewed with every call.
        if (renewAt <= clock.now()) renewAt = Math.min(clock.now() + RETRY_MS, next.endsAt ?? Infinity);
        return next.value;
      })
      .catch((cause: Error) => {
        renewAt = clock.now() + RETRY_MS;
        throw cause instanceof ports.ModelTimeout || cause instanceof ports.ModelUnreachable
          ? cause
          : new ports.ModelUnreachable(`${what} (${cause.name})`, { cause });
      })
      .finally(() => {
        silence.cancel();
        if (reading === renewed) reading = undefined;
      });
    return (reading = renewed);
  };

  return {
    current() {
      const now = clock.now();
      if (!known || (known.endsAt !== undefined && known.endsAt <= now)) return reading ?? renew();
      // The present value is valid: a failure matters only to those that wait when it has ended.
      if (renewAt <= now && !reading) renew().catch(() => {});
      return known.value;
    },
    refused(value) {
      // Another call has renewed it since.
      if (value !== known?.value) return true;
      if (clock.now() < refusedAt + RETRY_MS) return false;
      refusedAt = clock.now();
      known = undefined;
      return true;
    },
  };
}

function endOfWait(what: string, clock: ports.Clock): { readonly promise: Promise<never>; readonly cancel: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = clock.after(READING_MS, () => reject(new ports.ModelTimeout(`${what} in time`)));
  return { promise, cancel: () => timer.cancel() };
}
