import { pendingUpload, pendingUploads, type ports, readPages, writeAgain } from "@portico/core";
import { LRUCache } from "lru-cache";
import { createFileHolds } from "./file-holds.ts";
import { HELD_MEDIA } from "./limits.ts";
import { mediaTypeOfExtension } from "./media-type.ts";

/** The record of a media file. Its bytes are stored separately. */
export interface Media {
  readonly mediaId: string;
  /** The owner. Media of earlier versions of the platform have no owner, and every user of the instance may read them. */
  readonly userId?: string | undefined;
  readonly type: "image" | "audio" | "video";
  readonly name: string;
  readonly mimeType: string;
  readonly size: number;
  /** Absent if the size was not measured. */
  readonly sha256?: string | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
  /** When the last query that refers to it was accepted (ISO 8601). Absent: it was not used yet. */
  readonly usedAt?: string | undefined;
}

/** Media for a user; `forbidden` if it belongs to another user. */
type MediaFound = { readonly media: Media } | "forbidden" | "missing";

const MEDIA_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.[a-z0-9]{2,5}$/;

/** The key of a media file's bytes in the port `blobs`. */
export const mediaKey = (mediaId: string): string => `media/${mediaId}`;

/** Whether a text can be a media's id: `<uuid>.<extension>`, with an extension of a media type (specification 2.8). */
export function isMediaId(text: string): boolean {
  return MEDIA_ID.test(text) && mediaTypeOfExtension(text.slice(text.indexOf(".") + 1)) !== undefined;
}

export type MediaFiles = ReturnType<typeof createMedia>;

/** The media of an instance. Functions throw RecordsUnavailable and BlobsUnavailable. */
export function createMedia({ records, blobs }: { readonly records: ports.Records; readonly blobs: ports.Blobs }) {
  const owned = records.collection<Media>({
    name: "media",
    indexes: { byAge: ["createdAt"], byUser: ["userId", "createdAt"] },
  });
  const pending = records.collection(pendingUploads);
  const holds = createFileHolds(records);
  // What readers need of a record never changes, so reading several ranges asks the store only once.
  const held = new LRUCache<string, Media>({ max: HELD_MEDIA });

  const find = async (mediaId: string): Promise<Media | undefined> => {
    const known = held.get(mediaId);
    if (known) return known;
    const stored = (await owned.get(mediaId))?.value;
    if (stored) {
      held.set(mediaId, stored);
      return stored;
    }
    // Open points 6: a file without a record is from an earlier version, which had no owners.
    const legacy = await blobs.stat(mediaKey(mediaId));
    const type = mediaTypeOfExtension(mediaId.slice(mediaId.indexOf(".") + 1));
    // Without its record, a file that is being removed must not count as one of these.
    if (!legacy || !type || (await pending.get(pendingUpload(mediaKey(mediaId))))) return undefined;
    const { kind, mimeType } = type;
    const createdAt = new Date(legacy.modifiedAt).toISOString();
    return { mediaId, type: kind, name: mediaId, mimeType, size: legacy.size, createdAt };
  };

  return {
    /** Reads by a signed link, which only permitted callers receive. Missing bytes surface when the file is read. */
    find,
    async findFor(userId: string, mediaId: string): Promise<MediaFound> {
      const media = await find(mediaId);
      // A record whose file is missing no longer counts as media (specification 4.5, rule 6). For media without an owner, the file was found.
      if (!media || (media.userId !== undefined && !(await blobs.stat(mediaKey(mediaId))))) return "missing";
      return media.userId === undefined || media.userId === userId ? { media } : "forbidden";
    },
    /** Add the record of a media file, with `writes` in the same commit. */
    add: (media: Media, writes: readonly ports.Write[]): Promise<void> =>
      records.batch([owned.write.put(media.mediaId, media, "absent"), ...writes]),
    /**
     * The writes that keep media as long as `work` is open, for the commit that accepts the work. The commit conflicts if the media was
     * removed meanwhile. Undefined if this user may read no such media.
     */
    async hold(userId: string, mediaId: string, work: string, usedAt: string): Promise<readonly ports.Write[] | undefined> {
      const stored = await owned.get(mediaId);
      if (!stored) return (await find(mediaId)) && [];
      if (stored.value.userId !== undefined && stored.value.userId !== userId) return undefined;
      return [owned.write.put(mediaId, { ...stored.value, usedAt }, stored.version), holds.hold(mediaKey(mediaId), work)];
    },
    /** Media that was uploaded before this time (ISO 8601), the oldest first, in pages. */
    async *uploadedBefore(at: string): AsyncGenerator<readonly Media[], void> {
      for await (const items of readPages(owned, { order: OLDEST })) {
        const found = items.filter(({ value }) => value.createdAt < at);
        yield found.map(({ value }) => value);
        if (found.length < items.length) return;
      }
    },
    /** The media of a user, the oldest first, in pages. */
    async *list(userId: string): AsyncGenerator<readonly Media[], void> {
      for await (const items of readPages(owned, { where: { userId }, order: OLDEST })) yield items.map(({ value }) => value);
    },
    /**
     * Remove the record of media that `mayRemove` and no open work uses, with `writes` in the same commit. False if it is kept or does not
     * exist.
     */
    remove: ({ mediaId }: Media, mayRemove: (media: Media) => boolean, writes: readonly ports.Write[]): Promise<boolean> =>
      writeAgain(async () => {
        const stored = await owned.get(mediaId);
        // Its version is read before its holds: a hold that is written later conflicts with the removal.
        if (!stored || !mayRemove(stored.value) || (await holds.isHeld(mediaKey(mediaId)))) return false;
        await records.batch([owned.write.remove(mediaId, stored.version), ...writes]);
        held.delete(mediaId);
        return true;
      }),
  };
}

const OLDEST = { by: "createdAt", direction: "ascending" } as const;
