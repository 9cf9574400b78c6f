import { defineContract, type Envelope, reply } from "@portico/core/contract";
import * as v from "valibot";
import { fileErrors } from "./errors.ts";
import { ATTACHMENT_BYTES, LINKED_MEDIA, MEDIA_BYTES, UPLOAD_ENVELOPE_BYTES } from "./limits.ts";

/** The code is in `error` (specification 7.5). `details` contains what a caller can correct. */
const fileEnvelope: Envelope = ({ code, details }) => ({
  error: code,
  ...(Object.keys(details).length > 0 && { details }),
});

const text = v.string();

/** Specification 2.7. */
const attachmentReceipt = v.object({
  attachmentId: text,
  name: text,
  mimeType: text,
  size: v.number(),
  sha256: text,
  fileReference: text,
});

/** Specification 2.8. */
const mediaMetadata = v.object({
  type: v.picklist(["image", "audio", "video"]),
  mediaId: text,
  name: text,
  mimeType: text,
  size: v.number(),
  width: v.optional(v.number()),
  height: v.optional(v.number()),
});

/** Specification 2.9. */
const mediaLink = v.object({ mediaId: text, url: text, expiresAt: text });

const multipart = { accepts: ["multipart/form-data"], bodyAs: "stream" } as const;
const { unauthorized, origin_not_allowed } = fileErrors;
const attachmentFaults = {
  body_too_large: fileErrors.attachment_too_large,
  invalid_request: fileErrors.attachment_file_required,
  unsupported_media_type: fileErrors.attachment_file_required,
  origin_not_allowed,
};
const mediaFaults = {
  body_too_large: fileErrors.media_too_large,
  invalid_request: fileErrors.invalid_media_request,
  invalid_json: fileErrors.invalid_media_request,
  internal_error: fileErrors.media_internal_error,
  origin_not_allowed,
};

/** General files, media, and short-lived links to media (specification 4.5). */
export const attachmentsMediaContract = defineContract(
  { surface: "agent", auth: "instance", envelope: fileEnvelope, faults: mediaFaults },
  {
    uploadAttachment: {
      ...multipart,
      method: "POST",
      path: "/api/attachments",
      summary: "Store one file, in the field `file`",
      faults: attachmentFaults,
      bodyLimit: ATTACHMENT_BYTES + UPLOAD_ENVELOPE_BYTES,
      success: reply.json(attachmentReceipt, 201),
      errors: {
        unauthorized,
        attachment_identity_required: fileErrors.attachment_identity_required,
        attachment_file_required: fileErrors.attachment_file_required,
        attachment_empty: fileErrors.attachment_empty,
        attachment_too_large: fileErrors.attachment_too_large,
        attachment_limit: fileErrors.attachment_limit,
        attachment_storage_limit: fileErrors.attachment_storage_limit,
        attachment_storage_unavailable: fileErrors.attachment_storage_unavailable,
      },
    },
    downloadAttachment: {
      method: "GET",
      path: "/api/attachments/:attachmentId",
      summary: "Read one of the caller's own files",
      params: v.strictObject({ attachmentId: text }),
      faults: attachmentFaults,
      success: reply.exchange(["application/octet-stream"]),
      errors: {
        unauthorized,
        attachment_identity_required: fileErrors.attachment_identity_required,
        attachment_not_found: fileErrors.attachment_not_found,
        attachment_storage_unavailable: fileErrors.attachment_storage_unavailable,
      },
    },
    uploadMedia: {
      ...multipart,
      method: "POST",
      path: "/api/media/upload",
      summary: "Store one image, sound or video",
      faults: { ...mediaFaults, unsupported_media_type: fileErrors.media_file_required },
      bodyLimit: MEDIA_BYTES + UPLOAD_ENVELOPE_BYTES,
      success: reply.json(mediaMetadata),
      errors: {
        unauthorized,
        media_identity_required: fileErrors.media_identity_required,
        media_file_required: fileErrors.media_file_required,
        media_empty: fileErrors.media_empty,
        media_too_large: fileErrors.media_too_large,
        media_type_unsupported: fileErrors.media_type_unsupported,
        media_internal_error: fileErrors.media_internal_error,
      },
    },
    mediaLinks: {
      method: "POST",
      path: "/api/media/access-urls",
      summary: "Sign links to media, valid for five minutes",
      body: v.strictObject({ mediaIds: v.pipe(v.array(text), v.minLength(1), v.maxLength(LINKED_MEDIA)) }),
      success: reply.json(v.object({ items: v.array(mediaLink), missing: v.array(text) })),
      errors: {
        unauthorized,
        invalid_media_request: fileErrors.invalid_media_request,
        media_identity_required: fileErrors.media_identity_required,
        media_owner_forbidden: fileErrors.media_owner_forbidden,
        media_signing_unavailable: fileErrors.media_signing_unavailable,
        media_internal_error: fileErrors.media_internal_error,
      },
    },
    readMedia: {
      method: "GET",
      path: "/media/:filename",
      summary: "Read media by a signed link, whole or a range of it",
      auth: "signed",
      params: v.strictObject({ filename: text }),
      query: v.object({
        expires: v.optional(v.union([text, v.array(text)])),
        signature: v.optional(v.union([text, v.array(text)])),
      }),
      success: reply.exchange(["image/*", "audio/*", "video/*"]),
      errors: {
        invalid_media_signature: fileErrors.invalid_media_signature,
        media_signature_expired: fileErrors.media_signature_expired,
        media_not_found: fileErrors.media_not_found,
        range_not_satisfiable: fileErrors.range_not_satisfiable,
        media_internal_error: fileErrors.media_internal_error,
        media_signing_unavailable: fileErrors.media_signing_unavailable,
      },
    },
  },
);
