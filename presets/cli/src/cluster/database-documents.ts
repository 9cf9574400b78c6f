import { recordDocuments } from "@portico/adapters/documents/records";
import type { DocumentReading } from "@portico/adapters/stores/documents-at";
import { createApp, ports } from "@portico/core";
import { clusterProblems } from "@portico/presets/cluster/problems";
import { clusterStore } from "@portico/presets/cluster/store";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DocumentSource } from "./document-sources.ts";

/** Documents in the database of a cluster, to be read without an app. Throws DocumentsUnavailable. */
export async function readDatabaseDocuments(settings: PlatformSettings, source: DocumentSource): Promise<DocumentReading> {
  const [problem] = clusterProblems(settings);
  if (problem !== undefined) throw new ports.DocumentsUnavailable(problem);
  const adapters = [...clusterStore(settings, [ports.records]), recordDocuments({ id: source })];
  const app = await createApp({ name: "documents", adapters }).catch((cause: unknown) => {
    if (!(cause instanceof ports.RecordsUnavailable)) throw cause;
    throw new ports.DocumentsUnavailable(cause.message, { cause });
  });
  const [documents] = app.port(ports.documents);
  return { read: documents!.read, list: documents!.list, close: () => app.close() };
}
