import { setImmediate as nextTurn } from "node:timers/promises";
import { createPendingUploads, keepingMs, type ports } from "@portico/core";
import { type Attachment, attachmentKey, type Attachments, createAttachments } from "./attachments.ts";
import type { AttachmentsMediaSettings } from "./config.ts";
import { createMedia, type Media, type MediaFiles, mediaKey } from "./media.ts";

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

/** How often old files are removed. The first time is soon after the start, for services that do not run for an hour. */
export const FILES_SWEEP: ports.ChoreOptions = { everyMs: 60 * 60_000, firstMs: 60_000 };

/** Files that are removed at the same time: other work of the store goes on in between. */
const AT_ONCE = 10;

/**
 * Removes files that were not used for as long as the settings keep them. Each removal is complete or found again after a kill: the record
 * goes first, in one commit with a note of its bytes, and the bytes second.
 */
export function createSweepFiles(given: {
  readonly attachments: Attachments;
  readonly media: MediaFiles;
  readonly files: StoredFiles;
  readonly clock: ports.Clock;
  readonly settings: AttachmentsMediaSettings;
}): (closing: AbortSignal) => Promise<void> {
  const { attachments, media, files, clock, settings } = given;
  const [keepAttachmentsMs, keepMediaMs] = [keepingMs(settings.keepAttachments), keepingMs(settings.keepMedia)];
  const beforeOf = (keepMs: number) => new Date(Math.max(clock.now() - keepMs, 0)).toISOString();

  return async (closing) => {
    if (keepAttachmentsMs !== undefined) await removeOld(attachments, beforeOf(keepAttachmentsMs), files, closing);
    if (keepMediaMs !== undefined) await removeOld(media, beforeOf(keepMediaMs), files, closing);
  };
}

async function removeOld<T extends Attachment | Media>(
  all: { uploadedBefore(at: string): AsyncIterable<readonly T[]> },
  before: string,
  files: StoredFiles,
  closing: AbortSignal,
): Promise<void> {
  for await (const page of all.uploadedBefore(before)) {
    const old = page.filter((file) => isUnusedSince(file, before));
    for (let from = 0; from < old.length; from += AT_ONCE) {
      if (closing.aborted) return;
      await Promise.all(old.slice(from, from + AT_ONCE).map((file) => files.remove(file, before)));
      await nextTurn();
    }
  }
}
