import type { BlobPlace } from "@portico/adapters/blobs/blob-place";
import { findObject } from "./find-object.ts";
import { listKeys } from "./list-keys.ts";
import { openObject } from "./open-object.ts";
import { removeObject } from "./remove-object.ts";
import { createS3Draft, type S3DraftGiven } from "./s3-draft.ts";

/** Blobs that are objects of a bucket. */
export function s3Place(given: S3DraftGiven): BlobPlace {
  const { client } = given;
  const removals = new Map<string, Promise<boolean>>();
  return {
    draft: async (key, signal) => createS3Draft(given, key, signal),
    async find(key, signal) {
      const found = await findObject(client, key, signal);
      return found && { size: found.size, modifiedAt: found.modifiedAt };
    },
    open: (key, wanted, signals) => openObject(client, key, wanted, AbortSignal.any([...signals])),
    async remove(key, signal) {
      // One after another, for stores that delete unconditionally: then only one caller of this process is told that the blob
      // existed.
      const before = removals.get(key)?.catch(() => {});
      const removal = Promise.resolve(before).then(() => removeObject(client, key, signal));
      removals.set(key, removal);
      try {
        return await removal;
      } finally {
        if (removals.get(key) === removal) removals.delete(key);
      }
    },
    keys: (prefix, signal) => listKeys(client, prefix, signal),
    close: () => client.close(),
  };
}
