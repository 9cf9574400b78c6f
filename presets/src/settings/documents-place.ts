import type { DocumentsAt } from "@portico/adapters/stores/documents-at";
import type { PlatformSettings } from "./platform.ts";
import { namesCluster } from "./names-cluster.ts";

/** The place of the agents' documents. */
export function agentsAt({ documents, agentsDir }: PlatformSettings["agent"]): DocumentsAt {
  return placeOf(documents, agentsDir);
}

/** The place of the workflow definitions. */
export function definitionsAt({ documents, definitionsDir }: PlatformSettings["workflow"]): DocumentsAt {
  return placeOf(documents, definitionsDir);
}

/** For people: the folder, or the driver. */
export function placeInWords(at: DocumentsAt): string {
  return "dir" in at ? at.dir : `the store of the driver "${at.driver}"`;
}

/** The place of the workflow definitions, for people. */
export function definitionsInWords(settings: PlatformSettings): string {
  return isInDatabase(settings) ? "the database of the cluster" : placeInWords(definitionsAt(settings.workflow));
}

/** Whether documents are in the database of a cluster. */
export function isInDatabase(settings: PlatformSettings): boolean {
  return namesCluster(settings) && settings.cluster.documents === "database";
}

function placeOf({ driver, options }: PlatformSettings["agent"]["documents"], dir: string): DocumentsAt {
  return driver === "fs" ? { dir } : { driver, options };
}
