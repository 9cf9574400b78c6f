import { answerMedia } from "../answer-media.ts";
import { isMediaId } from "../media.ts";
import { toMediaError } from "../translated-errors.ts";
import type { FileHandlers, FileServices } from "./file-services.ts";

/** Sends the media that a signed link names. */
export function readMedia({ blobs, accel, clock, links, media }: FileServices): FileHandlers["readMedia"] {
  return async ({ params: { filename }, query: { expires, signature }, head, exchange, signal, fail }) => {
    try {
      const expiresAt = await links.check({ mediaId: filename, expires, signature });
      if (expiresAt === "invalid") throw fail.invalid_media_signature();
      if (expiresAt === "expired") throw fail.media_signature_expired();
      const found = isMediaId(filename) ? await media.find(filename) : undefined;
      if (!found) throw fail.media_not_found();
      await answerMedia({ exchange, head, media: found, expiresAt, blobs, accel, clock, signal });
    } catch (error) {
      throw toMediaError(error);
    }
  };
}
