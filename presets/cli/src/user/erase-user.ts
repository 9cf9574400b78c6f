import { setTimeout as pause } from "node:timers/promises";
import { compactSqliteStore } from "@portico/adapters/stores/compact-sqlite";
import { ports, withoutEnd } from "@portico/core";
import { CallFailed, createClient } from "@portico/core/client";
import { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { commandActor } from "../command-actor.ts";
import { dataDirectory } from "../data-directory.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { readEndpoints } from "../endpoints-file.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { trustOwnCertificate } from "../certificate.ts";
import { storesElsewhere } from "../instance-stores.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { hasStore, withStores } from "../store-app.ts";
import { instanceToken } from "../workflows/issue-grant.ts";
import { findService } from "../workflows/running-service.ts";
import { USER_PORTS, type UserStores, userStoresOf } from "./user-stores.ts";

const LOOK_MS = 250;
/** Agent engines end within seconds after their turn was stopped. */
const PATIENCE_MS = 60_000;

/** What was removed of a user, by kind. */
interface ErasedUser {
  readonly userId: string;
  readonly runs: number;
  readonly conversations: number;
  readonly submissions: number;
  readonly deliveries: number;
  readonly memories: number;
  readonly workflowRuns: number;
  readonly attachments: number;
  readonly media: number;
  readonly accounts: number;
}

/**
 * Remove everything that the instance keeps of a user. Works beside a running service; repeat it after a kill. `cancel` stops the user's
 * turns and workflow runs first. Throws CommandFailed: 1 if the user has open work, 69, 78.
 */
export async function eraseUser(
  flags: SettingsFlags,
  userId: string,
  { cancel }: { readonly cancel: boolean },
): Promise<ErasedUser> {
  const { settings } = await readSettings(flags);
  const nothing = {
    runs: 0,
    conversations: 0,
    submissions: 0,
    deliveries: 0,
    memories: 0,
    workflowRuns: 0,
    attachments: 0,
    media: 0,
    accounts: 0,
  };
  if (!hasStore(settings)) return { userId, ...nothing };
  const erased = await withStores(settings, { needed: USER_PORTS }, async (app) => {
    const stores = userStoresOf(app);
    await expectNoWork(settings, stores, userId, cancel);
    const { signal } = new AbortController();
    const fact = { action: "user.erase", object: userId, who: commandActor() };
    return app.port(ports.audit).attempt(fact, async () => ({
      userId,
      ...(await stores.runs.erase(userId, signal)),
      workflowRuns: await stores.workflowRuns.erase(userId, signal),
      ...(await eraseFiles(stores, userId)),
      accounts: await stores.accounts.erase(userId),
    }));
  });
  if (!namesCluster(settings) && storesElsewhere(settings, [ports.records]).length === 0) await compact(settings);
  return erased;
}

async function eraseFiles({ files }: UserStores, userId: string) {
  const erased = { attachments: 0, media: 0 };
  for await (const page of files.attachments(userId)) {
    for (const file of page) if (await files.remove(file)) erased.attachments++;
  }
  for await (const page of files.media(userId)) {
    for (const file of page) if (await files.remove(file)) erased.media++;
  }
  await files.finishRemovals(new AbortController().signal);
  await files.forgetUsage(userId);
  return erased;
}

async function expectNoWork(settings: PlatformSettings, stores: UserStores, userId: string, cancel: boolean): Promise<void> {
  let open = await countOpen(stores, userId);
  if (open > 0 && !cancel)
    throw new CommandFailed(
      `The user has ${open === 1 ? "1 turn or run that waits or executes" : `${open} turns or runs that wait or execute`}: wait for the end, or use --cancel`,
      EXIT.failed,
    );
  if (open > 0) await stopWorkOf(settings, stores, userId);
  for (let waitedMs = 0; open > 0 && waitedMs < PATIENCE_MS; waitedMs += LOOK_MS) {
    await pause(LOOK_MS);
    open = await countOpen(stores, userId);
  }
  if (open > 0)
    throw new CommandFailed("The user's work did not end in time after it was stopped: repeat the command", EXIT.failed);
}

async function countOpen({ runs, workflowRuns }: UserStores, userId: string): Promise<number> {
  let open = await runs.countOpen(userId);
  for await (const _run of workflowRuns.open(userId)) open++;
  return open;
}

/** SQLite keeps removed content in free pages of its file. */
async function compact(settings: PlatformSettings): Promise<void> {
  const { signal } = new AbortController();
  try {
    if (await compactSqliteStore(dataDirectory(settings.dataDir).path, signal)) return;
  } catch (cause) {
    throw new CommandFailed(
      "Everything was removed, but the database file could not be rewritten: free pages may still have traces. Repeat the command",
      EXIT.unavailable,
      cause,
    );
  }
  throw new CommandFailed(
    "Everything was removed, but another process reads the database's write-ahead log, which may still have traces. Repeat the command",
    EXIT.unavailable,
  );
}

const ANSWER_MS = 30_000;

/**
 * Asks the running services to stop the turns and workflow runs of a user. Throws CommandFailed: 69 if no service runs or answers, 1 if it
 * refuses.
 */
async function stopWorkOf(settings: PlatformSettings, { runs, workflowRuns }: UserStores, userId: string): Promise<void> {
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
