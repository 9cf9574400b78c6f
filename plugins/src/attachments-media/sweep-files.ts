import { setImmediate as nextTurn } from "node:timers/promises";
import type { ports } from "@portico/core";
import type { Attachment, Attachments } from "./attachments.ts";
import type { AttachmentsMediaSettings } from "./config.ts";
import type { Media, MediaFiles } from "./media.ts";
import { isUnusedSince, type StoredFiles } from "./stored-files.ts";

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
  const { keepAttachmentsMs, keepMediaMs } = settings;
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
