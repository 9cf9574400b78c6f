import { findStoreTooNew, ports, stepsFrom } from "@portico/core";
import { listKeys } from "./list-keys.ts";
import type { StoreClient } from "./store-client.ts";

/** Prefix of marks, which no key has: the mark of format 2 is an empty object `.format-2`. Format 1 has none. */
const MARK = ".format-";
const FIRST_FORMAT_ONLY: readonly never[] = [];

/** Throws BlobsUnavailable if a newer version wrote below the prefix, and the client's error if the bucket cannot be listed. */
export async function checkFormat(client: StoreClient, signal: AbortSignal): Promise<void> {
  const marks = await Array.fromAsync(listKeys(client, MARK, signal));
  const found = marks.reduce((newest, mark) => Math.max(newest, Number(mark.slice(MARK.length)) || 1), 1);
  try {
    stepsFrom("The bucket of blobs", found, FIRST_FORMAT_ONLY);
  } catch (cause) {
    throw new ports.BlobsUnavailable(findStoreTooNew(cause)?.message ?? "The bucket of blobs does not tell its format", {
      cause,
    });
  }
}
