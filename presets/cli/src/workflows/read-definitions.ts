import type { DocumentReading } from "@portico/adapters/stores/documents-at";
import { readWorkflowDocuments } from "@portico/adapters/stores/workflow-documents";
import { type DeployedDefinitions, readDeployed } from "@portico/plugins/workflow-service/definitions";
import { definitionsAt, isInDatabase } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { readNodeRules } from "./node-rules.ts";

/** The deployed definitions, read in the same way as by the service. Throws DocumentsUnavailable. */
export async function readDefinitions(settings: PlatformSettings): Promise<DeployedDefinitions> {
  const { types, secretNames } = await readNodeRules({ settings });
  const documents = await openDocuments(settings);
  try {
    return await readDeployed(documents, { types, secretNames: new Set(secretNames) });
  } finally {
    await documents.close();
  }
}

async function openDocuments(settings: PlatformSettings): Promise<DocumentReading> {
  if (!isInDatabase(settings)) return readWorkflowDocuments(definitionsAt(settings.workflow));
  // Loads the drivers of servers only where there is a cluster.
  return (await import("../cluster/documents.ts")).readDatabaseDocuments(settings, "workflows");
}
