import type { Live, Secret } from "@portico/core";
import { createKnownSecrets, type CredentialSource, type RequestHeaders } from "./credentials.ts";
import { KeyPool, type RestReason } from "./key-pool.ts";
import { type LimitMeter, measureKeys } from "./limit-gauges.ts";
import { LimitReached } from "./limit-reached.ts";
import { retryAfterOf } from "./retry-after.ts";

/** A key that the upstream wants back at once rests a little, so that the other keys are used first. */
const SHORTEST_REST_MS = 1_000;

/**
 * Several keys, used in turn. A key rests after 401 and 403 (refused), and after 402 and 429 (limited, for `retry-after`). If all keys
 * rest and one of them is limited, calls get status 429. If the upstream refused all keys, each call tries one of them, so that callers see
 * the refusal, and a key that is valid again is found.
 */
export function createPooledCredential(
  headerOf: (credential: string) => RequestHeaders,
  options: {
    readonly id: string;
    readonly keys: readonly Secret[];
    readonly keyRestMs: number;
    readonly rotation?: Live<{ readonly keys?: readonly Secret[] | undefined } | undefined> | undefined;
  },
  meter: LimitMeter,
): CredentialSource {
  const { clock, scope } = meter;
  const { log } = meter.telemetry;
  const { id, keyRestMs } = options;
  const textsOf = (keys: readonly Secret[]) => keys.map((key) => key.reveal());
  const pool = new KeyPool(textsOf(options.keys));
  measureKeys(id, pool, meter);
  const known = createKnownSecrets(textsOf(options.keys));
  const sent = new WeakMap<RequestHeaders, { readonly value: string; readonly place: number }>();
  if (options.rotation)
    scope.onClose(
      options.rotation.follow((next) => () => {
        if (!next?.keys) return;
        pool.replace(textsOf(next.keys));
        known.replace(textsOf(next.keys));
      }),
    );

  const restOf = (status: number): RestReason | undefined => {
    if (status === 401 || status === 403) return "refused";
    return status === 402 || status === 429 ? "limited" : undefined;
  };

  return {
    headersFor() {
      const now = clock.now();
      const key = pool.next(now) ?? (pool.hasLimited(now) ? undefined : pool.first());
      if (!key)
        throw new LimitReached(
          `Portico's provider "${id}" has no key left: its vendor limited or refused all of them`,
          pool.wakesAt - now,
        );
      const headers = { ...headerOf(key.value) };
      sent.set(headers, key);
      return headers;
    },
    answered(headers, answer) {
      const key = sent.get(headers);
      const reason = restOf(answer.status);
      if (!key || !reason) return false;
      const now = clock.now();
      const asked = reason === "limited" ? retryAfterOf(answer.headers, now, answer.whole?.toString()) : undefined;
      const restMs = Math.max(asked ?? keyRestMs, SHORTEST_REST_MS);
      pool.rest(key.value, now + restMs, reason);
      log.warn("A key of a provider rests", {
        provider: id,
        key: key.place,
        reason,
        status: answer.status,
        ms: Math.round(restMs),
      });
      return pool.wakesAt <= now;
    },
    secrets: known.all,
  };
}
