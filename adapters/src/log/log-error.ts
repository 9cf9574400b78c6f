import { ports } from "@portico/core";

/** The store speaks of records; whoever asks the log hears of the log. What is the caller's own stays as it is. */
export function toLogError(error: unknown): unknown {
  const isOwn = error instanceof ports.RecordConflict || error instanceof ports.LogUnavailable || error instanceof TypeError;
  return isOwn ? error : new ports.LogUnavailable("The log cannot be reached", { cause: error });
}

/** Await what the store does. Throws what the log throws. */
export async function translated<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw toLogError(error);
  }
}
