import { ports } from "@portico/core";
import type { CommandCredential } from "../limit-options.ts";
import { createKnownSecrets, type CredentialSource, type RequestHeaders } from "./credentials.ts";
import type { LimitMeter } from "./limit-gauges.ts";
import { readToken } from "./read-token.ts";
import { createRenewal, type Ending } from "./renewal.ts";
import { CommandFailed, runTokenCommand } from "./run-token-command.ts";

/** A token is renewed at most this long before its end. */
const EARLY_MS = 60_000;
/** A token that has ended already, by the clock of this machine, is still used this long: the command does not run for every call. */
const SHORTEST_LIFE_MS = 10_000;
/** After a failure, calls fail with the same error this long. */
const FAILURE_PAUSE_MS = 5_000;

/**
 * A token that a command prints. The first call runs the command, and concurrent calls share this run. Shortly before its end, the token
 * is renewed while calls still use it. A token that the upstream refuses is renewed once. Arguments and output of the command
 * appear in no error and no log line.
 */
export function createCommandCredential(
  headerOf: (credential: string) => RequestHeaders,
  { id, credential }: { readonly id: string; readonly credential: CommandCredential },
  { clock, telemetry: { log }, scope }: LimitMeter,
): CredentialSource {
  const { command, forMs, timeoutMs } = credential;
  const known = createKnownSecrets([]);
  const closing = new AbortController();
  scope.onClose(() => closing.abort());

  const run = async (): Promise<Ending<RequestHeaders>> => {
    const late = new AbortController();
    const timer = clock.after(timeoutMs, () => late.abort());
    try {
      const output = await runTokenCommand(command, AbortSignal.any([late.signal, closing.signal]));
      const now = clock.now();
      const printed = readToken(output, now);
      if (!printed) throw new CommandFailed("it printed no valid token");
      known.replace([printed.value]);
      // A new object for each token: a refusal names the headers of its request.
      return { value: { ...headerOf(printed.value) }, endsAt: Math.max(printed.endsAt ?? now + forMs, now + SHORTEST_LIFE_MS) };
    } catch (error) {
      const own = error instanceof CommandFailed ? error.reason : "unknown";
      const reason = late.signal.aborted ? `it ran longer than ${timeoutMs} ms` : own;
      if (!closing.signal.aborted) log.warn("The command of a provider's credential failed", { provider: id, reason });
      throw new ports.ModelUnreachable(`${what}: ${reason}`);
    } finally {
      timer.cancel();
    }
  };

  const what = `Provider "${id}" got no credential from its command`;
  // The command has ended by its own timeout before that of the renewal.
  const renewal = createRenewal(what, run, clock, { earlyMs: EARLY_MS, timeoutMs: 2 * timeoutMs, pauseMs: FAILURE_PAUSE_MS });
  return {
    headersFor: () => renewal.current(),
    // Some vendors answer an expired token with 403 (anthropics/claude-code#43436).
    answered: (headers, { status }) => (status === 401 || status === 403) && renewal.refused(headers),
    secrets: known.all,
  };
}
