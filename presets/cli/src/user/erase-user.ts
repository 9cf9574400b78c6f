import { setTimeout as pause } from "node:timers/promises";
import { compactSqliteStore } from "@portico/adapters/stores/compact-sqlite";
import { ports } from "@portico/core";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { commandActor } from "../command-actor.ts";
import { dataDirectory } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { storesElsewhere } from "../instance-stores.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { hasStore, withStores } from "../store-app.ts";
import { stopWorkOf } from "./stop-work.ts";
import { USER_PORTS, type UserStores, userStoresOf } from "./user-stores.ts";

const LOOK_MS = 250;
/** Agent engines end within seconds after their turn was stopped. */
const PATIENCE_MS = 60_000;

/** What was removed of a user, by kind. */
export interface ErasedUser {
  readonly userId: string;
  readonly runs: number;
  readonly conversations: number;
  readonly submissions: number;
  readonly deliveries: number;
  readonly workflowRuns: number;
  readonly attachments: number;
  readonly media: number;
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
  const nothing = { runs: 0, conversations: 0, submissions: 0, deliveries: 0, workflowRuns: 0, attachments: 0, media: 0 };
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
