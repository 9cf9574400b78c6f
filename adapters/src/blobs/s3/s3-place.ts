import type { ports } from "@portico/core";
import type { BlobPlace } from "../blob-place.ts";
import { findObject } from "./find-object.ts";
import { listKeys } from "./list-keys.ts";
import { openObject } from "./open-object.ts";
import { removeObject } from "./remove-object.ts";
import { createS3Draft } from "./s3-draft.ts";
import type { StoreClient } from "./store-client.ts";

/** Blobs that are objects of a bucket. */
export function s3Place(client: StoreClient, partBytes: number, clock: ports.Clock): BlobPlace {
  return {
    draft: async (key, signal) => createS3Draft(client, key, partBytes, clock, signal),
    async find(key, signal) {
      const found = await findObject(client, key, signal);
      return found && { size: found.size, modifiedAt: found.modifiedAt };
    },
    open: (key, wanted, signal) => openObject(client, key, wanted, signal),
    remove: (key, signal) => removeObject(client, key, signal),
    keys: (prefix, signal) => listKeys(client, prefix, signal),
    close: () => client.close(),
  };
}
