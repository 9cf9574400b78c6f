import { ports } from "@portico/core";
import type { CommandCredential } from "../limit-options.ts";
import { createKnownSecrets, type CredentialSource, type RequestHeaders } from "./credentials.ts";
import type { LimitMeter } from "./limit-gauges.ts";
import { readToken } from "./read-token.ts";
import { CommandFailed, runTokenCommand } from "./run-token-command.ts";

/** A token is renewed this long before its end, or when a tenth of its time is left, whichever is later. */
const EARLY_MS = 60_000;
/** A token that has ended already, by the clock of this machine, is still used this long: the command does not run for every call. */
const SHORTEST_LIFE_MS = 10_000;
/** After a failure, calls fail with the same error this long. */
const FAILURE_PAUSE_MS = 5_000;
/** After a refused token, the command runs early at most once in this time. */
const REFUSAL_PAUSE_MS = 30_000;

interface Token {
  readonly value: string;
  readonly headers: RequestHeaders;
  readonly renewAt: number;
  readonly endsAt: number;
}

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
  const known = createKnownSecrets([]);
  const closing = new AbortController();
  scope.onClose(() => closing.abort());
  let token: Token | undefined;
  let renewal: Promise<Token> | undefined;
  let failed: { readonly error: Error; readonly until: number } | undefined;
  let refusedAt = -Infinity;

  const run = async (): Promise<Token> => {
    const late = new AbortController();
    const timer = clock.after(credential.timeoutMs, () => late.abort());
    try {
      const output = await runTokenCommand(credential.command, AbortSignal.any([late.signal, closing.signal]));
      const now = clock.now();
      const printed = readToken(output, now);
      if (!printed) throw new CommandFailed("it printed no valid token");
      const endsAt = Math.max(printed.endsAt ?? now + credential.forMs, now + SHORTEST_LIFE_MS);
      const early = Math.min(EARLY_MS, (endsAt - now) / 10);
      return { value: printed.value, headers: { ...headerOf(printed.value) }, renewAt: endsAt - early, endsAt };
    } catch (error) {
      if (late.signal.aborted) throw new CommandFailed(`it ran longer than ${credential.timeoutMs} ms`);
      throw error;
    } finally {
      timer.cancel();
    }
  };

  const renew = async (): Promise<Token> => {
    try {
      const next = await run();
      if (next.value !== token?.value) known.replace([next.value]);
      failed = undefined;
      return (token = next);
    } catch (error) {
      const reason = error instanceof CommandFailed ? error.reason : "unknown";
      const failure = new ports.ModelUnreachable(`Provider "${id}" got no credential from its command: ${reason}`);
      failed = { error: failure, until: clock.now() + FAILURE_PAUSE_MS };
      if (!closing.signal.aborted) log.warn("The command of a provider's credential failed", { provider: id, reason });
      throw failure;
    } finally {
      renewal = undefined;
    }
  };

  const shared = (): Promise<Token> => {
    if (renewal) return renewal;
    if (failed && clock.now() < failed.until) return Promise.reject(failed.error);
    return (renewal = renew());
  };

  return {
    headersFor() {
      const now = clock.now();
      if (!token || now >= token.endsAt) return shared().then(({ headers }) => headers);
      // Calls use the present token meanwhile. A failure matters only at its end.
      if (now >= token.renewAt) shared().catch(() => {});
      return token.headers;
    },
    answered(headers, { status }) {
      // Some vendors answer an expired token with 403 (anthropics/claude-code#43436).
      if (status !== 401 && status !== 403) return false;
      // Another call has renewed it since.
      if (headers !== token?.headers) return true;
      const now = clock.now();
      if (now < refusedAt + REFUSAL_PAUSE_MS) return false;
      refusedAt = now;
      token = undefined;
      return true;
    },
    secrets: known.all,
  };
}
