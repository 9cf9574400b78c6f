import { agentSchedulesContract } from "@portico/operator/agent-schedules/contract";
import { CallFailed, type CallResult, createClient } from "@portico/core/client";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { trustOwnCertificate } from "../https/trust-own-certificate.ts";
import { checkedUrl, runningAt } from "../running-at.ts";
import { instanceToken } from "../workflows/issue-grant.ts";

/** A service that is silent for this long counts as not reachable. */
const ANSWER_MS = 30_000;

export type ListedSchedule = CallResult<typeof agentSchedulesContract.list>["schedules"][number];

export interface ScheduleName {
  readonly agentId: string;
  readonly name: string;
}

/** A schedule as it is written on the command line: `AGENT/NAME`. Throws CommandFailed (64) for any other text. */
export function readScheduleName(text: string): ScheduleName {
  const [agentId, name, ...more] = text.split("/");
  if (agentId && name && more.length === 0) return { agentId, name };
  throw new CommandFailed("Write a schedule as AGENT/NAME, such as reporter/morning", EXIT.usage);
}

/**
 * The schedules of the agent service that uses the data directory, or of the service at another address. The functions throw CommandFailed: 1 with the
 * service's own message if it refuses, 69 if it cannot be reached.
 */
export async function findSchedules(settings: PlatformSettings, given: string | undefined) {
  const baseURL = given === undefined ? runningAt(settings, "agent") : checkedUrl(given);
  if (baseURL.startsWith("https:")) trustOwnCertificate(settings);
  const token = await instanceToken(settings);
  const client = createClient(agentSchedulesContract, { baseURL, headers: { "x-agent-service-token": token.reveal() } });
  const answered = async <T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    try {
      return await call(AbortSignal.timeout(ANSWER_MS));
    } catch (error) {
      if (CallFailed.is(error)) throw new CommandFailed(wordsOf(error), EXIT.failed, error);
      throw new CommandFailed(`The agent service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
    }
  };
  return {
    list: (): Promise<readonly ListedSchedule[]> => answered(async (signal) => (await client.list({ signal })).schedules),
    trigger: (params: ScheduleName) => answered((signal) => client.trigger({ params, signal })),
    pause: (params: ScheduleName) => answered((signal) => client.pause({ params, signal })),
    resume: (params: ScheduleName) => answered((signal) => client.resume({ params, signal })),
  };
}

function wordsOf({ status, body }: CallFailed): string {
  const { error } = (typeof body === "object" && body !== null ? body : {}) as { error?: unknown };
  return `The agent service refused: ${typeof error === "string" ? error : `It answered with status ${status}`}`;
}
