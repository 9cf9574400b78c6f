import { definitionsAt, isInDatabase } from "@portico/presets/settings/documents-place";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { type DataDirectory, dataDirectory } from "../data-directory.ts";
import { CommandFailed } from "../exit-codes.ts";
import { elsewhereInWords, storesElsewhere } from "../instance-stores.ts";
import { type ReadSettings, readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { checkAgents } from "./check-agents.ts";
import { checkConfigFile, checkEnvironment } from "./check-config.ts";
import { checkDataDirectory, checkInstanceKey, checkStores } from "./check-instance.ts";
import { checkFolder, doubtful, type Finding, wrong } from "./finding.ts";
import { checkMcpServers } from "./check-mcp-servers.ts";
import { checkNotifications } from "./check-notifications.ts";
import { checkHttps, checkPorts } from "./check-listeners.ts";
import { checkProcesses } from "./check-processes.ts";
import { checkProviders } from "./check-providers.ts";
import { checkWorkflows } from "./check-workflows.ts";
import { checkLimits } from "./unreachable-limits.ts";

/** Options of `diagnose`. */
interface DiagnoseOptions {
  /** Read everything that is stored, and list what is orphaned. */
  readonly deep: boolean;
  /** Send one call to a model of each provider. */
  readonly call: boolean;
}

/** All checks, in the order in which a person would fix problems. If the configuration cannot be read, no other check runs. */
export async function diagnose(flags: SettingsFlags, { deep, call }: DiagnoseOptions): Promise<readonly Finding[]> {
  let read: ReadSettings;
  try {
    read = await readSettings(flags);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    const fix = "correct the key at the start of the line; docs/configuration.md lists all keys";
    return error.message.split("\n").map((line) => wrong("configuration", line, fix));
  }
  const { settings } = read;
  const directory = dataDirectory(settings.dataDir);
  const isCluster = namesCluster(settings);
  const mcp = await checkMcpServers(settings);
  const areDocumentsHere = !isCluster || settings.cluster.documents === "directory";
  return [
    ...checkConfigFile(read),
    ...checkEnvironment(read, process.env),
    ...(isCluster ? await clusterFindings(settings) : await directoryFindings(settings, directory)),
    ...(deep ? await deepFindings(settings, directory) : []),
    ...(await checkProviders(settings, directory, { call })),
    ...mcp.findings,
    ...(await checkNotifications(settings, { call })),
    ...(areDocumentsHere ? await checkAgents(read, mcp.tools) : []),
    ...checkFolder(read, "workflow.definitionsDir", isInDatabase(settings) ? {} : definitionsAt(settings.workflow)),
    ...(await checkWorkflows(settings)),
    ...checkLimits(settings),
    ...checkHttps(settings, directory),
    ...(await checkPorts(settings, directory)),
    ...(await checkProcesses(settings)),
  ];
}

async function directoryFindings(settings: PlatformSettings, directory: DataDirectory): Promise<readonly Finding[]> {
  const found = checkDataDirectory(directory);
  // Stores of a preset's own have checks of their own.
  const elsewhere = storesElsewhere(settings);
  if (elsewhere.length > 0)
    return [...found, doubtful("stores", `not checked: ${elsewhereInWords(settings, elsewhere)}, which doctor does not know`)];
  return [...found, ...checkStores(directory), ...(await checkInstanceKey(settings, directory))];
}

async function deepFindings(settings: PlatformSettings, directory: DataDirectory): Promise<readonly Finding[]> {
  if (namesCluster(settings)) {
    const words = "not for clusters: PostgreSQL and the place of blobs have checks of their own (docs/cluster-operations.md)";
    return [doubtful("deep checks", words)];
  }
  const elsewhere = storesElsewhere(settings);
  if (elsewhere.length > 0) return [doubtful("deep checks", `not done: ${elsewhereInWords(settings, elsewhere)}`)];
  const { checkDeep } = await import("./check-deep.ts");
  return checkDeep(settings, directory);
}

/** Loaded only for clusters, because other instances need no drivers of servers. */
async function clusterFindings(settings: PlatformSettings): Promise<readonly Finding[]> {
  const { checkCluster } = await import("./check-cluster.ts");
  return checkCluster(settings);
}
