import { ports } from "@portico/core";

/**
 * Await the storage. Throws the port's own errors and the signals' reasons unchanged, and any other error as BlobsUnavailable.
 */
export async function orUnavailable<T>(work: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw signals.some((signal) => signal.aborted && error === signal.reason) ? error : toUnavailable(error);
  }
}

/**
 * Converts an error for callers of the port. Errors of the port stay unchanged. Any other error becomes BlobsUnavailable, with
 * the error as its cause.
 */
export function toUnavailable(error: unknown): unknown {
  const isOurs = error instanceof ports.BlobExists || error instanceof ports.BlobsUnavailable;
  return isOurs ? error : new ports.BlobsUnavailable("The blobs cannot be read or written", { cause: error });
}
