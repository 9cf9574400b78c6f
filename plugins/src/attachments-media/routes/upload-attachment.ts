import { cleanFileName, cleanMediaType, openUpload } from "@portico/core";
import { attachmentKey, toFileReference } from "../attachments.ts";
import { ATTACHMENT_BYTES } from "../limits.ts";
import { toAttachmentError } from "../translated-errors.ts";
import type { FileHandlers, FileServices } from "./file-services.ts";

/** Stores a file of a user. */
export function uploadAttachment({ attachments, blobs, clock, ids, pending }: FileServices): FileHandlers["uploadAttachment"] {
  return async ({ body, who: { userId }, signal, fail }) => {
    if (userId === undefined) throw fail.attachment_identity_required();
    try {
      // A user whose quota is used up is refused before the bytes arrive.
      const reached = await attachments.reached(userId);
      if (reached) throw fail[reached]();
      const upload = await openUpload(body, { field: "file", maxBytes: ATTACHMENT_BYTES, signal });
      const attachmentId = ids.uuid();
      const key = attachmentKey(attachmentId);
      const about = { attachmentId, name: cleanFileName(upload.name), mimeType: cleanMediaType(upload.mimeType) };
      const { size, sha256 } = await pending.store(
        key,
        () => blobs.put(key, upload.stream, { maxBytes: ATTACHMENT_BYTES, signal }),
        async (stored, ends) => {
          if (stored.size === 0) throw fail.attachment_empty();
          const createdAt = new Date(clock.now()).toISOString();
          const passed = await attachments.add({ ...about, ...stored, userId, createdAt }, [ends]);
          if (passed) throw fail[passed]();
          return stored;
        },
      );
      return { ...about, size, sha256, fileReference: toFileReference(attachmentId) };
    } catch (error) {
      throw toAttachmentError(error);
    }
  };
}
