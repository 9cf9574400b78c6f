import type { ports } from "@portico/core";
import { type LoadingWith, loadDefinition } from "./load-definition.ts";
import { type BrokenDefinition, openCatalogue } from "./open-catalogue.ts";

/** The definitions that a service finds in its documents. */
export interface DeployedDefinitions {
  /** Ids of the definitions that can be used. */
  readonly deployed: readonly string[];
  readonly broken: readonly BrokenDefinition[];
}

/** Read all definitions once, as a service does when it starts. Rejects when the documents cannot be listed. */
export async function readDeployed(
  documents: Pick<ports.Documents, "list" | "read">,
  loading: LoadingWith,
): Promise<DeployedDefinitions> {
  const once = { ...documents, watch: async () => async () => {} };
  const load = (document: { readonly name: string; readonly text: string }) => loadDefinition(document, loading);
  const catalogue = await openCatalogue({ documents: once, load, log: SILENT }, { onClose() {}, onReady() {} });
  return { deployed: catalogue.list().map(({ id }) => id), broken: catalogue.broken() };
}

/** No log here: the caller reports broken definitions. */
const SILENT = { info() {}, warn() {} };
