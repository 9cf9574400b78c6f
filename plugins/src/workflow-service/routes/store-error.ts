import { ports } from "@portico/core";
import { workflowErrors } from "../errors.ts";

/** For reads: throws `store_unavailable` where a store is away, and any other error as it is. The caller can ask again. */
export function toStoreError(error: unknown): never {
  const isAway =
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.LogUnavailable ||
    error instanceof ports.BlobsUnavailable ||
    error instanceof ports.SigningUnavailable ||
    error instanceof ports.SealingUnavailable;
  throw isAway ? workflowErrors.store_unavailable(undefined, undefined, error) : error;
}

/** The same values. Errors of reading them are translated by `toStoreError`. */
export async function* orStoreError<T>(read: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* read;
  } catch (error) {
    toStoreError(error);
  }
}
