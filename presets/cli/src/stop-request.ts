import { EXIT } from "./exit-codes.ts";

/** A request to stop, caused by a signal or a defect. */
export interface StopRequest {
  /** Aborts when a stop is requested. This also cancels a start in progress. */
  readonly signal: AbortSignal;
  /** Resolves with the exit code for the process. It applies after everything is closed. */
  readonly requested: Promise<number>;
  /** Request a graceful shutdown. Default of the exit code: 0. */
  request(exitCode?: number): void;
  /** Set the handler of uncaught errors. Without a handler they are written to standard error. */
  onDefect(report: (error: unknown) => void): void;
}

const SIGNAL_EXITS = { SIGINT: 130, SIGTERM: 143 } as const;

/** A terminal sends Ctrl-C to npm and to its child, and npm forwards it. The duplicate arrives within this time and is ignored. */
const NPM_ECHO_MS = 300;

/**
 * Install handlers of SIGTERM and SIGINT (open points 1). The first signal requests a graceful shutdown, the second ends the process immediately. An
 * uncaught exception also requests a graceful shutdown, with exit code 70: requests in flight may finish, then a supervisor
 * restarts the service.
 */
export function listenForStop(): StopRequest {
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<number>();
  let report = (error: unknown) => console.error(error);
  let askedAt: number | undefined;

  const ask = (exitCode: number) => {
    resolve(exitCode);
    controller.abort(new Error("The service was asked to stop"));
  };
  for (const [signal, exitCode] of Object.entries(SIGNAL_EXITS)) {
    process.on(signal, () => {
      const now = performance.now();
      if (askedAt === undefined) {
        askedAt = now;
        return ask(EXIT.ok);
      }
      const isEcho = process.env["npm_lifecycle_event"] !== undefined && now - askedAt < NPM_ECHO_MS;
      if (!isEcho) process.exit(exitCode);
    });
  }
  let hasDefect = false;
  process.on("uncaughtException", (error) => {
    report(error);
    if (hasDefect) process.exit(EXIT.internal);
    hasDefect = true;
    ask(EXIT.internal);
  });
  return {
    signal: controller.signal,
    requested: promise,
    request: (exitCode = EXIT.ok) => ask(exitCode),
    onDefect(next) {
      report = next;
    },
  };
}

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
