import type { StopRequest } from "./stop-request.ts";

/** The requests to read secrets again. */
export interface Hangup {
  /** From now on, `told` is called for each request; at once if one came before. */
  onRequest(told: () => void): void;
  close(): void;
}

/**
 * Handle SIGHUP. A service requests its secrets to be read again with it, as usual for services. On a terminal, it means that the terminal
 * was closed: the service stops. Requests during the start are kept, because without a handler the signal ends the process.
 */
export function listenForHangup(stop: Pick<StopRequest, "request">, isOnTerminal = process.stdout.isTTY): Hangup {
  let isRequested = false;
  let told = (): void => {
    isRequested = true;
  };
  const onSignal = () => (isOnTerminal ? stop.request() : told());
  process.on("SIGHUP", onSignal);
  return {
    onRequest(next) {
      told = next;
      if (isRequested) next();
    },
    close: () => void process.off("SIGHUP", onSignal),
  };
}
