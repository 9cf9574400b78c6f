import { signInContract } from "@portico/console/sign-in/contract";
import { CallFailed, createClient } from "@portico/core/client";
import { trustOwnCertificate } from "./certificate.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import { absoluteLink, checkedUrl, runningAt } from "./running-at.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { instanceToken } from "./workflows/issue-grant.ts";

/** A service that is silent for this long counts as not reachable. */
const ANSWER_MS = 30_000;

/**
 * Has the running service make a link that opens its console signed in. `given` is the service's address; default: the service that uses the
 * data directory. Throws CommandFailed: 1 if the service refuses, 69 if it cannot be reached.
 */
export async function orderLink(
  flags: SettingsFlags,
  given: string | undefined,
): Promise<{ readonly url: string; readonly expiresAt: string }> {
  const { settings } = await readSettings(flags);
  const baseURL = given === undefined ? runningAt(settings, "agent") : checkedUrl(given);
  if (baseURL.startsWith("https:")) trustOwnCertificate(settings);
  const token = await instanceToken(settings);
  const client = createClient(signInContract, { baseURL, headers: { "x-agent-service-token": token.reveal() } });
  try {
    const { url, expiresAt } = await client.issueLink({ signal: AbortSignal.timeout(ANSWER_MS) });
    return { url: absoluteLink(given === undefined ? (settings.agent.publicUrl ?? baseURL) : baseURL, url), expiresAt };
  } catch (error) {
    if (!CallFailed.is(error))
      throw new CommandFailed(`The agent service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
    throw new CommandFailed(wordsOf(error), EXIT.failed, error);
  }
}

function wordsOf({ status, body }: CallFailed): string {
  if (status === 404) return "The agent service has no web console: set agent.console to true, and start it again";
  const { message } = (typeof body === "object" && body !== null ? body : {}) as { message?: unknown };
  return `The agent service refused: ${typeof message === "string" ? message : `It answered with status ${status}`}`;
}
