import { contentDisposition, type Exchange, type ports, type RequestHead, sendStream } from "@portico/core";
import { attachmentKey, type Attachment } from "./attachments.ts";
import { fileErrors } from "./errors.ts";

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
