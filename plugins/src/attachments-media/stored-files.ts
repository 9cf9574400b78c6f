import { createPendingUploads, type ports } from "@portico/core";
import { type Attachment, attachmentKey, createAttachments } from "./attachments.ts";
import { createMedia, type Media, mediaKey } from "./media.ts";

export type { Attachment } from "./attachments.ts";
export type { Media } from "./media.ts";

/** Collections of this area whose records each have one blob: `COLLECTION/ID`. */
export const FILE_COLLECTIONS: readonly string[] = ["attachments", "media"];

/** The stores of users' files. */
export interface StoredFilesGiven {
  readonly records: ports.Records;
  readonly blobs: ports.Blobs;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
}

/** Access to all files of an instance, for its operators. */
export interface StoredFiles {
  /** The attachments of a user, or of all users, the oldest first, in pages. Throws RecordsUnavailable. */
  attachments(userId?: string): AsyncIterable<readonly Attachment[]>;
  /** One attachment, of any user. Throws RecordsUnavailable. */
  attachment(attachmentId: string): Promise<Attachment | undefined>;
  /** The media of a user, the oldest first, in pages. Throws RecordsUnavailable. */
  media(userId: string): AsyncIterable<readonly Media[]>;
  /** The bytes of a file. Undefined if they are missing. Throws BlobsUnavailable. */
  open(file: Attachment | Media, signal: AbortSignal): Promise<ports.OpenBlob | undefined>;
  /**
   * Remove a file that was neither uploaded nor used since `before` (ISO 8601; default: whenever), and its bytes. A kill in between is
   * completed by the sweep of the service. False if it is kept: a query that waits or executes uses it, it was used since, or it does not
   * exist. Throws RecordsUnavailable.
   */
  remove(file: Attachment | Media, before?: string): Promise<boolean>;
  /** Remove the bytes that a killed removal left. Throws RecordsUnavailable and BlobsUnavailable. */
  finishRemovals(signal: AbortSignal): Promise<void>;
  /** Remove the empty quota of a user whose attachments were removed. Throws RecordsUnavailable. */
  forgetUsage(userId: string): Promise<void>;
}

/** Works in any process, also beside a running service. */
export function createStoredFiles(given: StoredFilesGiven): StoredFiles {
  const [attachments, media] = [createAttachments(given.records), createMedia(given)];
  const pending = createPendingUploads(given);
  return {
    attachments: (userId) => attachments.list(userId),
    attachment: attachments.get,
    media: (userId) => media.list(userId),
    finishRemovals: pending.sweep,
    forgetUsage: attachments.forgetUsage,
    open: (file, signal) => given.blobs.open(keyOf(file), { signal }),
    remove(file, before) {
      const mayRemove = (found: Attachment | Media) => before === undefined || isUnusedSince(found, before);
      return pending.remove(keyOf(file), (notes) =>
        "attachmentId" in file ? attachments.remove(file, mayRemove, [notes]) : media.remove(file, mayRemove, [notes]),
      );
    },
  };
}

/** Whether a file was neither uploaded nor used since this time (ISO 8601). */
export function isUnusedSince({ createdAt, usedAt }: Pick<Attachment | Media, "createdAt" | "usedAt">, before: string): boolean {
  return createdAt < before && (usedAt === undefined || usedAt < before);
}

function keyOf(file: Attachment | Media): string {
  return "attachmentId" in file ? attachmentKey(file.attachmentId) : mediaKey(file.mediaId);
}
