import {
  BodyTooLarge,
  type callerGuard,
  type Handlers,
  type PendingUploads,
  ports,
  UploadInvalid,
  UploadTooLarge,
} from "@portico/core";
import type { AccelRedirect } from "./answer-media.ts";
import type { Attachments } from "./attachments.ts";
import type { attachmentsMediaContract } from "./contract.ts";
import { fileErrors } from "./errors.ts";
import type { signedReadGuard } from "./guards.ts";
import type { MediaFiles } from "./media.ts";
import type { createSignedLinks } from "./signed-links.ts";

/** The services that the routes of this area use. */
export interface FileServices {
  readonly blobs: ports.Blobs;
  readonly accel: AccelRedirect | undefined;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly attachments: Attachments;
  readonly media: MediaFiles;
  readonly links: ReturnType<typeof createSignedLinks>;
  readonly pending: PendingUploads;
}

/** The handlers of this area, by route. */
export type FileHandlers = Handlers<
  typeof attachmentsMediaContract,
  { readonly instance: ReturnType<typeof callerGuard>; readonly signed: ReturnType<typeof signedReadGuard> }
>;

/** Translates errors of attachments into the area's errors. Other errors are returned unchanged. */
export function toAttachmentError(error: unknown): unknown {
  if (error instanceof UploadInvalid) return fileErrors.attachment_file_required(undefined, { reason: error.reason }, error);
  if (isTooLarge(error)) return fileErrors.attachment_too_large(undefined, {}, error);
  if (isStoreAway(error)) return fileErrors.attachment_storage_unavailable(undefined, {}, error);
  return error;
}

/** Translates errors of media into the area's errors. Other errors are returned unchanged. */
export function toMediaError(error: unknown): unknown {
  if (error instanceof UploadInvalid) return fileErrors.media_file_required(undefined, { reason: error.reason }, error);
  if (isTooLarge(error)) return fileErrors.media_too_large(undefined, {}, error);
  if (isStoreAway(error)) return fileErrors.media_internal_error(undefined, {}, error);
  if (error instanceof ports.SigningUnavailable) return fileErrors.media_signing_unavailable(undefined, {}, error);
  return error;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof UploadTooLarge || error instanceof BodyTooLarge || error instanceof ports.BlobTooLarge;
}

function isStoreAway(error: unknown): boolean {
  return (
    error instanceof ports.BlobsUnavailable || error instanceof ports.RecordsUnavailable || error instanceof ports.RecordConflict
  );
}
