import { type ports, repeatUntilClosed, type Scope } from "@portico/core";
import type { ClientRequests } from "./client-requests.ts";

const SWEEP_MS = 60_000;

/** Forgets what may be forgotten, every minute, until the app closes. */
export function sweepRequests(
  { requests, clock, log }: { readonly requests: ClientRequests; readonly clock: ports.Clock; readonly log: ports.Log },
  scope: Scope,
): void {
  repeatUntilClosed(scope, { clock, everyMs: SWEEP_MS }, (closing) =>
    requests.sweep(closing).catch((error: unknown) => {
      if (!closing.aborted) log.error("Old requests could not be removed", {}, error);
    }),
  );
}
