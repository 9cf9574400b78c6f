import { defineAdapter, ports } from "@portico/core";
import { attachmentKey, createAttachments } from "./attachments.ts";
import { createFileHolds } from "./file-holds.ts";
import { attachmentOf } from "./file-reference.ts";
import { createMedia, isMediaId, mediaKey } from "./media.ts";

/** Users' files, for other areas. Only owners can read their files. Every user can read media without an owner (open points 6). */
export const userFiles = defineAdapter({
  name: "user-files/attachments-media",
  port: ports.userFiles,
  needs: { blobs: ports.blobs, records: ports.records, clock: ports.clock },
  open({ blobs, records, clock }): ports.UserFiles {
    const attachments = createAttachments(records);
    const media = createMedia({ records, blobs });
    const holds = createFileHolds(records);
    const toFile = (
      key: string,
      { name, mimeType, size }: Pick<ports.UserFile, "name" | "mimeType" | "size">,
    ): ports.UserFile => ({
      name,
      mimeType,
      size,
      open: (signal) =>
        translated(async () => {
          const opened = await blobs.open(key, { signal });
          if (opened?.size === size) return opened.stream;
          // The caller reserved memory for the original size.
          opened?.stream.destroy();
          throw new ports.UserFilesUnavailable("The file is missing or damaged");
        }),
    });
    return {
      id: "attachments-media",
      media: (userId, mediaId) =>
        translated(async () => {
          const found = isMediaId(mediaId) ? await media.findFor(userId, mediaId) : "missing";
          return typeof found === "string" ? undefined : toFile(mediaKey(mediaId), found.media);
        }),
      attachment: (userId, fileReference) =>
        translated(async () => {
          const found = await attachments.findReference(userId, fileReference);
          return found && toFile(attachmentKey(found.attachmentId), found);
        }),
      hold: (userId, work, { mediaIds, fileReferences }) =>
        translated(async () => {
          const usedAt = new Date(clock.now()).toISOString();
          const held = await Promise.all([
            ...distinct(mediaIds).map((id) => (isMediaId(id) ? media.hold(userId, id, work, usedAt) : undefined)),
            ...distinct(fileReferences).map((reference) => attachments.hold(userId, attachmentOf(reference) ?? "", work, usedAt)),
          ]);
          return held.every((writes) => writes !== undefined) ? held.flat() : undefined;
        }),
      release: (work, { mediaIds, fileReferences }) => [
        ...distinct(mediaIds).map((id) => holds.release(mediaKey(id), work)),
        ...distinct(fileReferences).map((reference) => holds.release(attachmentKey(attachmentOf(reference) ?? ""), work)),
      ],
    };
  },
});

const distinct = (ids: readonly string[]): readonly string[] => [...new Set(ids)];

async function translated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const isAway = cause instanceof ports.RecordsUnavailable || cause instanceof ports.BlobsUnavailable;
    throw isAway ? new ports.UserFilesUnavailable("The files cannot be reached", { cause }) : cause;
  }
}
