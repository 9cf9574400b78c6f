import { Readable } from "node:stream";
import { ports } from "@portico/core";
import type { ProviderLimits } from "../limit-options.ts";
import { type LimitMeter, measureRetries } from "./limit-gauges.ts";
import { LimitReached } from "./limit-reached.ts";
import { quotaIsSpent } from "./spent-quota.ts";
import { retryAfterOf } from "./retry-after.ts";
import type { Upstream } from "./upstream.ts";

/**
 * Answers that may differ the next time: those that the client libraries of OpenAI and Anthropic retry, without 409 and without other
 * statuses of 5xx, such as 508 of a loop. 529 is Anthropic's overload.
 */
const PASSING = new Set([408, 429, 500, 502, 503, 504, 529]);

/**
 * Sends a call again that failed before its answer began: after statuses that may pass, after a failed connection, and when all keys
 * rest. A call whose body is a stream is sent once, because its bytes are gone. The wait is the upstream's `retry-after`; without one, it
 * doubles from attempt to attempt, and its length varies, so that calls that failed together do not return together.
 */
export function createRetryingUpstream(
  upstream: Upstream,
  id: string,
  { attempts, waitMs, maxWaitMs }: NonNullable<ProviderLimits["retry"]>,
  meter: LimitMeter,
): Upstream {
  const { clock } = meter;
  const { log } = meter.telemetry;
  let retries = 0;
  measureRetries(id, () => retries, meter);
  /** Undefined: no further attempt. */
  const waitFor = (asked: number | undefined, attempt: number): number | undefined => {
    if (asked !== undefined && asked > 0)
      return asked > maxWaitMs ? undefined : asked + Math.random() * Math.min(asked / 10, 1_000);
    return Math.min(waitMs * 2 ** (attempt - 1), maxWaitMs) * (0.5 + Math.random() / 2);
  };

  const request: Upstream["request"] = async (asked, signal) => {
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= attempts;
      let wait: number | undefined;
      let why: { readonly status?: number; readonly error?: string };
      try {
        const answer = await upstream.request(asked, signal);
        if (isLast || !PASSING.has(answer.status) || answer.headers["x-should-retry"] === "false" || quotaIsSpent(answer))
          return answer;
        wait = waitFor(retryAfterOf(answer.headers, clock.now(), answer.whole?.toString()), attempt);
        if (wait === undefined) return answer;
        answer.body.destroy();
        why = { status: answer.status };
      } catch (error) {
        wait =
          isLast || !isConnection(error)
            ? undefined
            : waitFor(error instanceof LimitReached ? error.retryAfterMs : undefined, attempt);
        if (wait === undefined || signal?.aborted) throw error;
        why = { error: error instanceof LimitReached ? "keys_rest" : "unreachable" };
      }
      log.info("A model call is sent again", { provider: id, attempt: attempt + 1, ms: Math.round(wait), ...why });
      await clock.sleep(wait, signal);
      retries += 1;
    }
  };
  return {
    request: (asked, signal) => (asked.body instanceof Readable ? upstream.request(asked, signal) : request(asked, signal)),
    close: () => upstream.close(),
  };
}

/** No connection, or a connection that ended before the answer. A timeout of the answer itself has no cause: the vendor may still work on it. */
function isConnection(error: unknown): boolean {
  return error instanceof ports.ModelUnreachable || (error instanceof ports.ModelTimeout && error.cause !== undefined);
}
