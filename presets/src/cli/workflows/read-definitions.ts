import { readWorkflowDocuments } from "@portico/adapters/stores/workflow-documents";
import { type DeployedDefinitions, readDeployed } from "@portico/plugins/workflow-service/definitions";
import { definitionsAt } from "../../platform/documents-place.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { DEFAULT_PRESET } from "../preset-table.ts";
import { readNodeRules } from "./node-rules.ts";

/** The deployed definitions, read in the same way as by the service. Throws DocumentsUnavailable. */
export async function readDefinitions(settings: PlatformSettings): Promise<DeployedDefinitions> {
  const { types, secretNames } = await readNodeRules({ settings, preset: DEFAULT_PRESET });
  const documents = await readWorkflowDocuments(definitionsAt(settings.workflow));
  try {
    return await readDeployed(documents, { types, secretNames: new Set(secretNames) });
  } finally {
    await documents.close();
  }
}
