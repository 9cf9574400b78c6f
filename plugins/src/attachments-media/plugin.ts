import { definePlugin, openUpload, ports } from "@portico/core";
import { answerAttachment } from "./answer-attachment.ts";
import { answerMedia } from "./answer-media.ts";
import { cleanMimeType, cleanName } from "./attachment-name.ts";
import { attachmentKey, createAttachments, toFileReference } from "./attachments.ts";
import { attachmentsMediaConfig } from "./config.ts";
import { attachmentsMediaContract } from "./contract.ts";
import { instanceGuard, signedReadGuard } from "./guards.ts";
import { IMAGE_HEAD_BYTES, imageDimensions } from "./image-dimensions.ts";
import { ATTACHMENT_BYTES, MEDIA_BYTES } from "./limits.ts";
import { createMedia, isMediaId, mediaKey } from "./media.ts";
import { fitsSignature, mediaTypeOf, SIGNATURE_BYTES } from "./media-type.ts";
import { peek } from "./peek.ts";
import { createPendingUploads } from "./pending-uploads.ts";
import { createSignedLinks } from "./signed-links.ts";
import { toAttachmentError, toMediaError } from "./translated-errors.ts";

/** General files, media, and short-lived links to media (specification 4.5). */
export const attachmentsMedia = definePlugin({
  name: "attachments-media",
  summary: "Files that queries refer to, and links to pictures, sounds and videos.",
  config: attachmentsMediaConfig,
  needs: {
    blobs: ports.blobs,
    records: ports.records,
    signing: ports.signing,
    identity: ports.identity,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
  },
  contract: attachmentsMediaContract,
  guards: ({ identity }) => ({ instance: instanceGuard(identity), signed: signedReadGuard(identity) }),
  setup(given, _settings, scope) {
    const { blobs, records, clock, ids, telemetry } = given;
    const attachments = createAttachments(records);
    const mediaStore = createMedia(given);
    const links = createSignedLinks(given);
    const pending = createPendingUploads({ records, blobs, clock, log: telemetry.log });
    scope.onReady(() => pending.watch(scope));
    const now = () => new Date(clock.now()).toISOString();

    return {
      async uploadAttachment({ body, who: { userId }, signal, fail }) {
        if (userId === undefined) throw fail.attachment_identity_required();
        try {
          // Whoever has no room is told before the bytes have come, and not behind them.
          const reached = await attachments.reached(userId);
          if (reached) throw fail[reached]();
          const upload = await openUpload(body, { field: "file", maxBytes: ATTACHMENT_BYTES, signal });
          const attachmentId = ids.uuid();
          const key = attachmentKey(attachmentId);
          const about = { attachmentId, name: cleanName(upload.name), mimeType: cleanMimeType(upload.mimeType) };
          const { size, sha256 } = await pending.store(
            key,
            () => blobs.put(key, upload.stream, { maxBytes: ATTACHMENT_BYTES, signal }),
            async (stored, ends) => {
              if (stored.size === 0) throw fail.attachment_empty();
              const passed = await attachments.add({ ...about, ...stored, userId, createdAt: now() }, [ends]);
              if (passed) throw fail[passed]();
              return stored;
            },
          );
          return { ...about, size, sha256, fileReference: toFileReference(attachmentId) };
        } catch (error) {
          throw toAttachmentError(error);
        }
      },

      async downloadAttachment({ params, who: { userId }, head, exchange, signal, fail }) {
        if (userId === undefined) throw fail.attachment_identity_required();
        try {
          const found = await attachments.find(userId, params.attachmentId);
          if (!found) throw fail.attachment_not_found();
          await answerAttachment({ exchange, head, attachment: found, blobs, clock, signal });
        } catch (error) {
          throw toAttachmentError(error);
        }
      },

      async uploadMedia({ body, who: { userId }, signal, fail }) {
        if (userId === undefined) throw fail.media_identity_required();
        try {
          const upload = await openUpload(body, { maxBytes: MEDIA_BYTES, signal });
          const type = mediaTypeOf(upload.mimeType);
          if (!type) throw fail.media_type_unsupported();
          const { head, whole } = await peek(upload.stream, type.kind === "image" ? IMAGE_HEAD_BYTES : SIGNATURE_BYTES);
          if (head.length === 0) throw fail.media_empty();
          if (!(await fitsSignature(type, head))) throw fail.media_type_unsupported();
          const mediaId = `${ids.uuid()}.${type.extension}`;
          const key = mediaKey(mediaId);
          const { kind, mimeType } = type;
          const dimensions = kind === "image" ? imageDimensions(head) : undefined;
          const about = { type: kind, mediaId, name: cleanName(upload.name), mimeType };
          const { size } = await pending.store(
            key,
            () => blobs.put(key, whole, { maxBytes: MEDIA_BYTES, signal }),
            async (stored, ends) => {
              await mediaStore.add({ ...about, ...stored, ...dimensions, userId, createdAt: now() }, [ends]);
              return stored;
            },
          );
          return { ...about, size, ...dimensions };
        } catch (error) {
          throw toMediaError(error);
        }
      },

      async mediaLinks({ body, who: { userId }, fail }) {
        const mediaIds = [...new Set(body.mediaIds)];
        // A malformed ID comes before a foreign one (open points 10).
        const malformed = mediaIds.filter((mediaId) => !isMediaId(mediaId));
        if (malformed.length > 0) throw fail.invalid_media_request();
        if (userId === undefined) throw fail.media_identity_required();
        try {
          const found = await Promise.all(mediaIds.map((mediaId) => mediaStore.findFor(userId, mediaId)));
          // All or nothing: nobody learns which of them is another's.
          if (found.includes("forbidden")) throw fail.media_owner_forbidden();
          const items = await Promise.all(
            found.flatMap((each) => (typeof each === "string" ? [] : links.sign(each.media.mediaId))),
          );
          return { items, missing: mediaIds.filter((_mediaId, at) => found[at] === "missing") };
        } catch (error) {
          throw toMediaError(error);
        }
      },

      async readMedia({ params: { filename }, query: { expires, signature }, head, exchange, signal, fail }) {
        try {
          const left = await links.check({ mediaId: filename, expires, signature });
          if (left === "invalid") throw fail.invalid_media_signature();
          if (left === "expired") throw fail.media_signature_expired();
          const media = isMediaId(filename) ? await mediaStore.find(filename) : undefined;
          if (!media) throw fail.media_not_found();
          await answerMedia({ exchange, head, media, secondsLeft: left, blobs, clock, signal });
        } catch (error) {
          throw toMediaError(error);
        }
      },
    };
  },
});
