import { readAgentCopies } from "@portico/adapters/stores/agent-documents";
import type { DocumentReading, DocumentsAt } from "@portico/adapters/stores/documents-at";
import { readWorkflowDocuments } from "@portico/adapters/stores/workflow-documents";
import { ports } from "@portico/core";
import { otherDocuments } from "@portico/presets/platform/stores-file";
import { agentsAt, definitionsAt } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { DOCUMENT_SOURCES, type DocumentSource } from "../cluster/document-sources.ts";
import { instanceStores } from "../instance-stores.ts";
import { printable } from "../terminal/printable.ts";
import { DOCUMENTS } from "./archive-format.ts";
import type { BackupTarget } from "./backup-target.ts";

/** Add the agents, with their skills, and workflow definitions of the settings' folders. Returns sentences about those that are left out. */
export async function collectDocuments(settings: PlatformSettings, target: BackupTarget): Promise<readonly string[]> {
  const stores = instanceStores(settings);
  return [
    ...(stores ? otherDocuments(stores) : []).map(
      ({ port, kind }) => `Some ${port === "agents" ? "agents" : "documents"} are not in the archive: ${kind} keeps them`,
    ),
    ...(await collect("agents", agentsAt(settings.agent), readAgentCopies, target)),
    ...(await collect("workflows", definitionsAt(settings.workflow), readWorkflowDocuments, target)),
  ];
}

async function collect(
  source: DocumentSource,
  at: DocumentsAt,
  open: (at: DocumentsAt, leftOut: (name: string) => void) => Promise<DocumentReading>,
  { writer, index }: BackupTarget,
): Promise<readonly string[]> {
  if (!("dir" in at)) return [`The ${source} are not in the archive: the driver "${at.driver}" stores them elsewhere`];
  const warnings: string[] = [];
  const documents = await open(at, (name) =>
    warnings.push(`The file ${printable(name)} of a skill is not in the archive: it is not text of at most 1 MiB`),
  );
  try {
    for (const name of (await documents.list()).filter((each) => DOCUMENT_SOURCES[source].test(each))) {
      try {
        const found = await documents.read(name);
        if (!found) continue;
        const bytes = Buffer.from(found.text);
        const entry = { name: `${DOCUMENTS}${source}/${name}`, size: bytes.length, modifiedAt: Date.now() };
        index.add(await writer.add(entry, [bytes]));
      } catch (error) {
        // One unreadable document does not prevent the backup of all data. A service cannot read it either.
        if (!(error instanceof ports.DocumentsUnavailable)) throw error;
        warnings.push(`The document ${printable(name)} of the ${source} cannot be read, and is not in the archive`);
      }
    }
  } finally {
    await documents.close();
  }
  return warnings;
}
