import { contentDisposition, type Exchange, type ports, type RequestHead, sendStream } from "@portico/core";
import { attachmentKey, type Attachment } from "./attachments.ts";
import { fileErrors } from "./errors.ts";

/** Sends an attachment, whole (specification 4.5). Throws `attachment_not_found` where its bytes are gone or damaged, and BlobsUnavailable. */
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
  // What is sent is looked for where it is opened.
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
      // Of another length it is damaged: what is announced and what is sent would differ.
      opened?.stream.destroy();
      throw fileErrors.attachment_not_found();
    },
  });
}
