import { Readable } from "node:stream";
import { ports } from "@portico/core";
import type { ProviderLimits } from "../limit-options.ts";
import { CallQueue, type Release } from "./call-queue.ts";
import { type LimitMeter, measureCalls } from "./limit-gauges.ts";
import { LimitReached } from "./limit-reached.ts";
import type { Upstream } from "./upstream.ts";

/** The longest `retry-after` of a full queue. */
const LONGEST_HINT_MS = 30_000;

/**
 * Lets only some calls run at once. A call counts from its start, with all its attempts, until the body of its answer has ended or was
 * destroyed.
 */
export function createQueuedUpstream(
  upstream: Upstream,
  id: string,
  { limit, queue: most, waitMs }: NonNullable<ProviderLimits["concurrency"]>,
  meter: LimitMeter,
): Upstream {
  const { clock } = meter;
  const queue = new CallQueue(limit, most);
  measureCalls(id, queue, meter);
  // A second for each call before it, as many at a time as run at once.
  const hint = () => Math.min(LONGEST_HINT_MS, 1_000 * (1 + Math.floor(queue.waiting / limit)));

  const enter = async (signal: AbortSignal | undefined): Promise<Release> => {
    const late = new AbortController();
    const timer = clock.after(waitMs, () =>
      late.abort(
        new LimitReached(
          `Portico's own limit for provider "${id}": the call waited ${waitMs} ms for one of ${limit} calls in progress to end`,
          hint(),
        ),
      ),
    );
    try {
      const place = queue.wait(signal ? AbortSignal.any([signal, late.signal]) : late.signal);
      if (place) return await place;
    } finally {
      timer.cancel();
    }
    throw new LimitReached(`Portico's own limit for provider "${id}": ${limit} calls are in progress, and ${most} wait`, hint());
  };

  const run = async (release: Release, ...asked: Parameters<Upstream["request"]>): Promise<ports.ModelAnswer> => {
    try {
      const answer = await upstream.request(...asked);
      if (answer.whole || answer.body.closed) release();
      else answer.body.once("close", release);
      return answer;
    } catch (error) {
      release();
      throw error;
    }
  };

  return {
    request(request, signal) {
      // Ends at once, without a place.
      if (signal?.aborted) return upstream.request(request, signal);
      const release = queue.tryEnter();
      if (release) return run(release, request, signal);
      return enter(signal).then(
        (entered) => run(entered, request, signal),
        (error: Error) => {
          if (request.body instanceof Readable) request.body.destroy();
          throw error;
        },
      );
    },
    close() {
      queue.close(new ports.ModelUnreachable(`Provider "${id}" is closed`));
      return upstream.close();
    },
  };
}
