import type { ports, Scope } from "@portico/core";
import type { ClientRequests } from "./client-requests.ts";

const SWEEP_MS = 60_000;

/** Forgets what may be forgotten, every minute, until the app closes. */
export function sweepRequests(
  { requests, clock, log }: { readonly requests: ClientRequests; readonly clock: ports.Clock; readonly log: ports.Log },
  scope: Scope,
): void {
  const closing = new AbortController();
  let sweeping: Promise<void> = Promise.resolve();
  const sweep = () => {
    sweeping = requests
      .sweep(closing.signal)
      .catch((error: unknown) => {
        if (!closing.signal.aborted) log.error("Old requests could not be forgotten", {}, error);
      })
      .then(() => {
        if (!closing.signal.aborted) timer = clock.after(SWEEP_MS, sweep);
      });
  };
  let timer = clock.after(SWEEP_MS, sweep);
  scope.onClose(async () => {
    closing.abort();
    timer.cancel();
    await sweeping;
  });
}
