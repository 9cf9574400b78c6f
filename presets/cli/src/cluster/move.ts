import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { recordDocuments } from "@portico/adapters/documents/records";
import { readAgentCopies } from "@portico/adapters/stores/agent-documents";
import { MoveFailed, type MovedDocuments, type MovedStore, moveStore } from "@portico/cluster/stores/move-store";
import { readWorkflowDocuments } from "@portico/adapters/stores/workflow-documents";
import { type App, ports } from "@portico/core";
import { clusterStore } from "@portico/presets/cluster/store";
import { otherStores, readStores } from "@portico/presets/platform/stores-file";
import { agentsAt, definitionsAt } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { checkDirectoryFormat, dataDirectory } from "../data-directory.ts";
import { lockDataDirectory } from "../data-lock.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { readClusterSettings, withClusterApp } from "./cluster-app.ts";
import { DOCUMENT_SOURCES, type DocumentSource } from "../backup/archive-format.ts";

/**
 * Copy the data directory of an instance, its agents and its workflow definitions into a cluster without data. Agents and definitions are
 * read where the configuration says, if the cluster has them in its database. Throws CommandFailed: 1 if the move was refused or the two
 * differ, 69, 75 while a process uses the data directory, 78.
 */
export async function moveInstance(flags: SettingsFlags, from: string, onPart: (part: string) => void): Promise<MovedStore> {
  const settings = await readClusterSettings(flags);
  const directory = dataDirectory(resolve(from));
  if (!existsSync(directory.records)) {
    throw new CommandFailed(`${directory.path} is not the data directory of an instance`, EXIT.noInput);
  }
  const stores = readStores(directory.path);
  const [elsewhere] = stores ? otherStores(stores) : [];
  if (elsewhere)
    throw new CommandFailed(
      `The preset ${stores!.preset} keeps its ${elsewhere.port} in ${elsewhere.kind}: portico move copies only the stores of a data directory`,
      EXIT.config,
    );
  checkDirectoryFormat(directory);
  const unlock = lockDataDirectory(directory);
  try {
    return await intoCluster(settings, async (to, documents) => moveStore({ from: directory.path, to, documents, onPart }));
  } catch (error) {
    throw error instanceof MoveFailed ? new CommandFailed(error.message, EXIT.failed, error) : error;
  } finally {
    unlock();
  }
}

type Target = Parameters<typeof moveStore>[0]["to"];

async function intoCluster<T>(
  settings: PlatformSettings,
  move: (to: Target, documents: readonly MovedDocuments[]) => Promise<T>,
): Promise<T> {
  const stores = clusterStore(settings, [ports.records, ports.log, ports.blobs, ports.secrets]);
  const isDatabase = settings.cluster.documents === "database";
  const sources = isDatabase ? [recordDocuments({ id: "agents" }), recordDocuments({ id: "workflows" })] : [];
  return withClusterApp([...stores, ...sources], async (app) => {
    const to = {
      records: app.port(ports.records),
      log: app.port(ports.log),
      blobs: app.port(ports.blobs),
      secrets: app.port(ports.secrets),
    };
    if (!isDatabase) return move(to, []);
    const agents = await readAgentCopies(agentsAt(settings.agent));
    const workflows = await readWorkflowDocuments(definitionsAt(settings.workflow));
    try {
      return await move(to, [copied("agents", agents, app), copied("workflows", workflows, app)]);
    } finally {
      await Promise.all([agents.close(), workflows.close()]);
    }
  });
}

function copied(source: DocumentSource, from: MovedDocuments["from"], app: App): MovedDocuments {
  const to = app.port(ports.documents).find(({ id }) => id === source)!;
  return { from, to, accepts: (name) => DOCUMENT_SOURCES[source].test(name) };
}
