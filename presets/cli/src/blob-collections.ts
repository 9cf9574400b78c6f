import { FILE_COLLECTIONS } from "@portico/plugins/attachments-media/stored-files";
import { RUN_FILE_COLLECTIONS } from "@portico/plugins/workflow-service/stored-runs";

/** Collections whose records each have one blob: `COLLECTION/ID`. */
export const BLOB_COLLECTIONS: readonly string[] = [...FILE_COLLECTIONS, ...RUN_FILE_COLLECTIONS];
