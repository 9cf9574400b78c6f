import { ports } from "@portico/core";

/** Await the place's work. Throws the port's own errors and the signals' reasons as they are, and anything else as BlobsUnavailable. */
export async function orUnavailable<T>(work: Promise<T>, ...signals: readonly AbortSignal[]): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw signals.some((signal) => signal.aborted && error === signal.reason) ? error : toUnavailable(error);
  }
}

export function toUnavailable(error: unknown): unknown {
  const isOurs = error instanceof ports.BlobExists || error instanceof ports.BlobsUnavailable;
  return isOurs ? error : new ports.BlobsUnavailable("The blobs cannot be read or written", { cause: error });
}
