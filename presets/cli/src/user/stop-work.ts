import { withoutEnd } from "@portico/core";
import { CallFailed, createClient } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "../data-directory.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints } from "../endpoints-file.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { trustOwnCertificate } from "../https/trust-own-certificate.ts";
import { instanceToken } from "../workflows/issue-grant.ts";
import { findService } from "../workflows/running-service.ts";
import type { UserStores } from "./user-stores.ts";

const ANSWER_MS = 30_000;

/**
 * Asks the running services to stop the turns and workflow runs of a user. Throws CommandFailed: 69 if no service runs or answers, 1 if it
 * refuses.
 */
export async function stopWorkOf(settings: PlatformSettings, { runs, workflowRuns }: UserStores, userId: string): Promise<void> {
  for await (const run of workflowRuns.open(userId)) await (await findService(settings, undefined)).cancel(run);
  if ((await runs.countOpen(userId)) === 0) return;
  const baseURL = agentAddress(settings);
  if (baseURL.startsWith("https:")) trustOwnCertificate(settings);
  const token = await instanceToken(settings);
  const client = createClient(conversationsRunsContract, { baseURL, headers: { "x-agent-service-token": token.reveal() } });
  try {
    await client.stopTurns({ params: { userId }, signal: AbortSignal.timeout(ANSWER_MS) });
  } catch (error) {
    if (CallFailed.is(error)) throw new CommandFailed(`The agent service refused: status ${error.status}`, EXIT.failed, error);
    throw new CommandFailed(`The agent service at ${baseURL} cannot be reached`, EXIT.unavailable, error);
  }
}

function agentAddress(settings: PlatformSettings): string {
  const { dataDir, agent } = settings;
  if (namesCluster(settings)) {
    if (agent.publicUrl !== undefined) return withoutEnd(agent.publicUrl, "/");
    throw new CommandFailed("The configuration has no agent.publicUrl: set it, so that work can be stopped", EXIT.unavailable);
  }
  const directory = dataDirectory(dataDir);
  const url = isDataDirectoryLocked(directory) ? readEndpoints(directory)?.listeners["agent"]?.url : undefined;
  if (url !== undefined) return url;
  throw new CommandFailed(
    `No agent service runs with the data directory ${directory.path}: start it, so that it can stop the user's work`,
    EXIT.unavailable,
  );
}
