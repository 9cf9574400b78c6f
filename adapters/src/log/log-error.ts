import { findStoreMismatch, ports } from "@portico/core";

/**
 * Errors of the store are about records. Callers of the log get errors of the log. Errors of the caller itself stay unchanged.
 */
export function toLogError(error: unknown): unknown {
  const isOwn = error instanceof ports.RecordConflict || error instanceof ports.LogUnavailable || error instanceof TypeError;
  return isOwn
    ? error
    : new ports.LogUnavailable(findStoreMismatch(error)?.message ?? "The log cannot be reached", { cause: error });
}

/** Await the store. Throws the log's errors. */
export async function translated<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw toLogError(error);
  }
}
