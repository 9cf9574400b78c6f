import type { Adapter } from "@portico/core";
import { unstorageDocuments } from "../documents/unstorage.ts";
import { type DocumentReading, type DocumentsAt, openReading } from "./documents-at.ts";
import { DEFINITION_DEPTH, workflowFolder } from "./workflow-folder.ts";

const ID = "workflows";

/** `workflowFolder` for a folder, and the same for workflow definitions in another store. */
export function workflowDocuments(at: DocumentsAt): readonly Adapter[] {
  return "dir" in at ? workflowFolder(at) : [unstorageDocuments({ id: ID, ...at })];
}

/** The same documents, for reading without an app: for tools that check definitions. Throws DocumentsUnavailable. */
export function readWorkflowDocuments(at: DocumentsAt): Promise<DocumentReading> {
  return openReading(ID, at, DEFINITION_DEPTH);
}
