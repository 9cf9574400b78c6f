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

/** Options of `createRenewal`. */
export interface RenewalOptions {
  /** A value is renewed this long before its end, or when a tenth of its life is left, while calls still use it. Default: 5 minutes. */
  readonly earlyMs?: number;
  /** Timeout of one reading: callers wait for it. Default: a minute. */
  readonly timeoutMs?: number;
  /** Without a value, calls fail with the same error for this long after a failure. Default: the next call reads again. */
  readonly pauseMs?: number;
}

/** Pause after a failed early renewal, and after a refused value. */
const RETRY_MS = 30_000;

/**
 * Renews a credential once for all concurrent calls, and in the background while the present one is valid. `what` names the credential in
 * messages, which have only the name of the cause: its message may quote a secret.
 */
export function createRenewal<T>(
  what: string,
  read: () => Promise<Ending<T>>,
  clock: ports.Clock,
  { earlyMs = 5 * 60_000, timeoutMs = 60_000, pauseMs = 0 }: RenewalOptions = {},
): Renewal<T> {
  let known: Ending<T> | undefined;
  let renewAt = 0;
  let refusedAt = -Infinity;
  let reading: Promise<T> | undefined;
  let failed: { readonly error: Error; readonly until: number } | undefined;

  const renew = (): Promise<T> => {
    const silence = endOfWait(what, timeoutMs, clock);
    const renewed = Promise.race([read(), silence.promise])
      .then((next) => {
        known = next;
        failed = undefined;
        const { endsAt = Infinity } = next;
        renewAt = endsAt - Math.min(earlyMs, (endsAt - clock.now()) / 10);
        return next.value;
      })
      .catch((cause: Error) => {
        const error =
          cause instanceof ports.ModelTimeout || cause instanceof ports.ModelUnreachable
            ? cause
            : new ports.ModelUnreachable(`${what} (${cause.name})`, { cause });
        failed = { error, until: clock.now() + pauseMs };
        renewAt = clock.now() + RETRY_MS;
        throw error;
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
      if (!known || (known.endsAt !== undefined && known.endsAt <= now))
        return reading ?? (failed && now < failed.until ? Promise.reject(failed.error) : renew());
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

function endOfWait(
  what: string,
  ms: number,
  clock: ports.Clock,
): { readonly promise: Promise<never>; readonly cancel: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = clock.after(ms, () => reject(new ports.ModelTimeout(`${what} in time`)));
  return { promise, cancel: () => timer.cancel() };
}
