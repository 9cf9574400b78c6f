import type { Readable } from "node:stream";
import { cleanFileName, openUpload } from "@portico/core";
import { answerMedia } from "./answer-media.ts";
import { type FileHandlers, type FileServices, toMediaError } from "./file-services.ts";
import { IMAGE_HEAD_BYTES, imageDimensions, JpegHead } from "./image-dimensions.ts";
import { MEDIA_BYTES } from "./limits.ts";
import { fitsSignature, mediaTypeOf, SIGNATURE_BYTES } from "./media-type.ts";
import { isMediaId, mediaKey } from "./media.ts";

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

/** Signs links to media of a user. */
export function mediaLinks({ links, media }: FileServices): FileHandlers["mediaLinks"] {
  return async ({ body, who: { userId }, fail }) => {
    const mediaIds = [...new Set(body.mediaIds)];
    // A malformed ID is reported before another user's ID (open points 10).
    const malformed = mediaIds.filter((mediaId) => !isMediaId(mediaId));
    if (malformed.length > 0) throw fail.invalid_media_request();
    if (userId === undefined) throw fail.media_identity_required();
    try {
      const found = await Promise.all(mediaIds.map((mediaId) => media.findFor(userId, mediaId)));
      // All links or no link, so that the caller does not learn which media belongs to another user.
      if (found.includes("forbidden")) throw fail.media_owner_forbidden();
      const items = await Promise.all(found.flatMap((each) => (typeof each === "string" ? [] : links.sign(each.media.mediaId))));
      return { items, missing: mediaIds.filter((_mediaId, at) => found[at] === "missing") };
    } catch (error) {
      throw toMediaError(error);
    }
  };
}

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

/** Returns the first bytes of a stream (about `most`, up to one chunk more), and a stream of all bytes, including these. */
export async function peek(
  stream: Readable,
  most: number,
): Promise<{ readonly head: Uint8Array; readonly whole: AsyncIterable<Uint8Array> }> {
  const iterator = stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const chunks: Uint8Array[] = [];
  let [length, isOver] = [0, false];
  while (length < most && !isOver) {
    const next = await iterator.next();
    isOver = next.done === true;
    if (next.done) break;
    chunks.push(next.value);
    length += next.value.length;
  }
  const head = Buffer.concat(chunks);
  async function* whole(): AsyncIterable<Uint8Array> {
    try {
      if (head.length > 0) yield head;
      while (!isOver) {
        const next = await iterator.next();
        if (next.done) return;
        yield next.value;
      }
    } finally {
      // If the reader stops early, the upload is ended.
      stream.destroy();
    }
  }
  return { head, whole: whole() };
}
