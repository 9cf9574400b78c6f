import { setImmediate as nextTurn } from "node:timers/promises";
import type { ports } from "@portico/core";
import { type Attachment, attachmentKey, type Attachments } from "./attachments.ts";
import type { AttachmentsMediaSettings } from "./config.ts";
import { type Media, type MediaFiles, mediaKey } from "./media.ts";
import type { PendingUploads } from "./pending-uploads.ts";

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
  readonly pending: PendingUploads;
  readonly clock: ports.Clock;
  readonly settings: AttachmentsMediaSettings;
}): (closing: AbortSignal) => Promise<void> {
  const { attachments, media, pending, clock, settings } = given;
  const { keepAttachmentsMs, keepMediaMs } = settings;
  const beforeOf = (keepMs: number) => new Date(Math.max(clock.now() - keepMs, 0)).toISOString();

  const removeAttachments = async (keepMs: number, closing: AbortSignal) => {
    const before = beforeOf(keepMs);
    const remove = (attachment: Attachment) =>
      pending.remove(attachmentKey(attachment.attachmentId), (notes) =>
        attachments.remove(attachment, (found) => isUnusedSince(found, before), [notes]),
      );
    await removeAll(attachments.uploadedBefore(before), (found) => isUnusedSince(found, before), remove, closing);
  };
  const removeMedia = async (keepMs: number, closing: AbortSignal) => {
    const before = beforeOf(keepMs);
    const remove = (file: Media) =>
      pending.remove(mediaKey(file.mediaId), (notes) => media.remove(file, (found) => isUnusedSince(found, before), [notes]));
    await removeAll(media.uploadedBefore(before), (found) => isUnusedSince(found, before), remove, closing);
  };

  return async (closing) => {
    if (keepAttachmentsMs !== undefined) await removeAttachments(keepAttachmentsMs, closing);
    if (keepMediaMs !== undefined) await removeMedia(keepMediaMs, closing);
  };
}

async function removeAll<T>(
  pages: AsyncIterable<readonly T[]>,
  isOld: (file: T) => boolean,
  remove: (file: T) => Promise<unknown>,
  closing: AbortSignal,
): Promise<void> {
  for await (const page of pages) {
    const old = page.filter(isOld);
    for (let from = 0; from < old.length; from += AT_ONCE) {
      if (closing.aborted) return;
      await Promise.all(old.slice(from, from + AT_ONCE).map(remove));
      await nextTurn();
    }
  }
}

/** Whether a file was neither uploaded nor used since then. */
function isUnusedSince({ createdAt, usedAt }: Pick<Attachment | Media, "createdAt" | "usedAt">, before: string): boolean {
  return createdAt < before && (usedAt === undefined || usedAt < before);
}
