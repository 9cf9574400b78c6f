import {
  cleanFileName,
  cleanMediaType,
  contentDisposition,
  type Exchange,
  openUpload,
  type ports,
  type RequestHead,
  sendStream,
} from "@portico/core";
import { type Attachment, attachmentKey } from "./attachments.ts";
import { toFileReference } from "./file-reference.ts";
import { fileErrors } from "./errors.ts";
import { type FileHandlers, type FileServices, toAttachmentError } from "./file-services.ts";
import { ATTACHMENT_BYTES } from "./limits.ts";

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

/** Sends a file to the user who owns it. */
export function downloadAttachment({ attachments, blobs, clock }: FileServices): FileHandlers["downloadAttachment"] {
  return async ({ params, who: { userId }, head, exchange, signal, fail }) => {
    if (userId === undefined) throw fail.attachment_identity_required();
    try {
      const attachment = await attachments.find(userId, params.attachmentId);
      if (!attachment) throw fail.attachment_not_found();
      await answerAttachment({ exchange, head, attachment, blobs, clock, signal });
    } catch (error) {
      throw toAttachmentError(error);
    }
  };
}

/** Sends a whole attachment (specification 4.5). Throws `attachment_not_found` if its bytes are missing or damaged, and BlobsUnavailable. */
export async function answerAttachment(given: {
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly attachment: Attachment;
  readonly blobs: ports.Blobs;
  readonly clock: ports.Clock;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { head, attachment, blobs, signal } = given;
  const key = attachmentKey(attachment.attachmentId);
  // If the bytes are sent, `open` checks that they exist.
  if (head.method === "HEAD" && (await blobs.stat(key))?.size !== attachment.size) throw fileErrors.attachment_not_found();
  const headers = {
    "content-type": "application/octet-stream",
    "content-disposition": contentDisposition("attachment", attachment.name),
    "content-length": `${attachment.size}`,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox",
  };
  await sendStream(given, {
    status: 200,
    headers,
    async open() {
      const opened = await blobs.open(key, { signal });
      if (opened?.size === attachment.size) return opened.stream;
      // A different length means that the file is damaged. The announced and the sent length would differ.
      opened?.stream.destroy();
      throw fileErrors.attachment_not_found();
    },
  });
}
