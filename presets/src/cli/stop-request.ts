import { EXIT } from "./exit-codes.ts";

/** A wish to stop, from a signal or from a defect. */
export interface StopRequest {
  /** Aborts with the wish, so that a start under way is given up, too. */
  readonly signal: AbortSignal;
  /** Resolves with the exit code that the process shall end with once everything is closed. */
  readonly requested: Promise<number>;
  /** Say who is told of an error that nothing caught; until then it goes to standard error. */
  onDefect(report: (error: unknown) => void): void;
}

const SIGNAL_EXITS = { SIGINT: 130, SIGTERM: 143 } as const;

/** A terminal sends Ctrl-C to npm and to its child, and npm passes it on: the echo arrives within this time and is no second wish. */
const NPM_ECHO_MS = 300;

/**
 * Listen for SIGTERM and SIGINT from now on (open points 1): the first asks for an orderly stop, a second ends the process at once. An
 * exception that nothing caught asks for an orderly stop, too, with exit code 70: what is in flight may finish, then a supervisor
 * starts anew.
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
    onDefect(next) {
      report = next;
    },
  };
}
