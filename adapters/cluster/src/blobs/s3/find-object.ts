import type { StoreClient, StoreHeaders } from "./store-client.ts";
import { hasStatus } from "./store-error.ts";

/** Facts about an existing object. */
export interface FoundObject {
  readonly size: number;
  /** Milliseconds since 1970, in whole seconds. */
  readonly modifiedAt: number;
  readonly headers: StoreHeaders;
}

/** The store's facts about a blob. Undefined for a missing blob. */
export async function findObject(client: StoreClient, key: string, signal: AbortSignal): Promise<FoundObject | undefined> {
  try {
    const { headers } = await client.ask({ method: "HEAD", key }, signal);
    return { size: readSize(headers["content-length"]), modifiedAt: Date.parse(`${headers["last-modified"]}`), headers };
  } catch (error) {
    if (hasStatus(error, 404)) return undefined;
    throw error;
  }
}

/** Throws Error if a store does not report the size. */
export function readSize(digits: unknown): number {
  const size = typeof digits === "string" && /^\d+$/.test(digits) ? Number(digits) : Number.NaN;
  if (!Number.isSafeInteger(size)) throw new Error("The store does not tell a blob's size");
  return size;
}
