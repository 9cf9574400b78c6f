import { type Contract } from "@portico/core";
import { CallFailed, type Client, createClient } from "@portico/core/client";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { trustOwnCertificate } from "./certificate.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { checkedUrl, runningAt } from "./running-at.ts";
import { instanceToken } from "./workflows/issue-grant.ts";

/** A service that is silent for this long counts as not reachable. */
const ANSWER_MS = 30_000;

/**
 * The agent service that uses the data directory, or the service at another address, called with the instance access token. `answered` runs one call,
 * for at most `withinMs` (default: 30 s). It throws CommandFailed: 1 with the service's own message if it refuses, 69 if it cannot be reached.
 */
export async function findAgentService<C extends Contract>(settings: PlatformSettings, contract: C, given: string | undefined) {
  const baseURL = given === undefined ? runningAt(settings, "agent") : checkedUrl(given);
  if (baseURL.startsWith("https:")) trustOwnCertificate(settings);
  const token = await instanceToken(settings);
  const client: Client<C> = createClient(contract, { baseURL, headers: { "x-agent-service-token": token.reveal() } });
  return {
    client,
    async answered<T>(call: (signal: AbortSignal) => Promise<T>, withinMs = ANSWER_MS): Promise<T> {
      try {
        return await call(AbortSignal.timeout(withinMs));
      } catch (error) {
        if (error instanceof CommandFailed) throw error;
        if (CallFailed.is(error)) throw new CommandFailed(wordsOf(error), EXIT.failed, error);
        throw new CommandFailed(`The agent service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
      }
    },
  };
}

function wordsOf({ status, body }: CallFailed): string {
  const { error } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown };
  return `The agent service refused: ${typeof error === "string" ? error : `It answered with status ${status}`}`;
}
