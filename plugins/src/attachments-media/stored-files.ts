/** For programs that compare the files of this area with their records. */
export { pendingUpload, pendingUploads } from "./pending-uploads.ts";

/** Collections of this area whose records each have one blob: `COLLECTION/ID`. */
export const FILE_COLLECTIONS: readonly string[] = ["attachments", "media"];
