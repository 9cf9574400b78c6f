const FOLDER = "/attachments/";

/** The reference to an attachment in queries: a path on this service, not a URL (specification 2.7). */
export const toFileReference = (attachmentId: string): string => FOLDER + attachmentId;

/** The id of the attachment that a `fileReference` names. Undefined for other texts. */
export function attachmentOf(fileReference: string): string | undefined {
  return fileReference.startsWith(FOLDER) ? fileReference.slice(FOLDER.length) : undefined;
}
