import type { Adapter } from "@portico/core";
import { unstorageDocuments } from "../documents/unstorage.ts";

const ID = "workflows";

/** Maximum folder depth of definitions. Deeper files are ignored. */
export const DEFINITION_DEPTH = 4;

/** Options of `workflowFolder`. */
export interface WorkflowFolderOptions {
  readonly dir: string;
}

/** Workflow definitions in a folder and its subfolders: the source of documents `workflows`. */
export function workflowFolder({ dir }: WorkflowFolderOptions): readonly Adapter[] {
  return [unstorageDocuments({ id: ID, dir, depth: DEFINITION_DEPTH })];
}
