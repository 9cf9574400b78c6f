import { answerAttachment } from "../answer-attachment.ts";
import { toAttachmentError } from "../translated-errors.ts";
import type { FileHandlers, FileServices } from "./file-services.ts";

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
