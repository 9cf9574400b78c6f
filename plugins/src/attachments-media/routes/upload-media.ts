import { cleanFileName, openUpload } from "@portico/core";
import { IMAGE_HEAD_BYTES, imageDimensions } from "../image-dimensions.ts";
import { JpegHead } from "../jpeg-head.ts";
import { MEDIA_BYTES } from "../limits.ts";
import { mediaKey } from "../media.ts";
import { fitsSignature, mediaTypeOf, SIGNATURE_BYTES } from "../media-type.ts";
import { peek } from "../peek.ts";
import { toMediaError } from "../translated-errors.ts";
import type { FileHandlers, FileServices } from "./file-services.ts";

/** Stores an image, audio or video file of a user, if its bytes match its type. */
export function uploadMedia({ blobs, clock, ids, media, pending }: FileServices): FileHandlers["uploadMedia"] {
  return async ({ body, who: { userId }, signal, fail }) => {
    if (userId === undefined) throw fail.media_identity_required();
    try {
      const upload = await openUpload(body, { maxBytes: MEDIA_BYTES, signal });
      const type = mediaTypeOf(upload.mimeType);
      if (!type) throw fail.media_type_unsupported();
      const jpeg = type.mimeType === "image/jpeg" ? new JpegHead() : undefined;
      const isPeeked = type.kind === "image" && !jpeg;
      const { head, whole } = await peek(upload.stream, isPeeked ? IMAGE_HEAD_BYTES : SIGNATURE_BYTES);
      if (head.length === 0) throw fail.media_empty();
      if (!(await fitsSignature(type, head))) throw fail.media_type_unsupported();
      const mediaId = `${ids.uuid()}.${type.extension}`;
      const key = mediaKey(mediaId);
      const { kind, mimeType } = type;
      const dimensions = () => (isPeeked ? imageDimensions(head) : jpeg?.dimensions());
      const about = { type: kind, mediaId, name: cleanFileName(upload.name), mimeType };
      const { size } = await pending.store(
        key,
        () => blobs.put(key, jpeg?.watch(whole) ?? whole, { maxBytes: MEDIA_BYTES, signal }),
        async (stored, ends) => {
          const createdAt = new Date(clock.now()).toISOString();
          await media.add({ ...about, ...stored, ...dimensions(), userId, createdAt }, [ends]);
          return stored;
        },
      );
      return { ...about, size, ...dimensions() };
    } catch (error) {
      throw toMediaError(error);
    }
  };
}
