import { findObject } from "./find-object.ts";
import type { StoreClient } from "./store-client.ts";
import { hasStatus } from "./store-error.ts";

/** How often another blob may replace the one to be removed. */
const ROUNDS = 10;

/** True if the blob existed. Of several concurrent removals, one gets true if the store checks the condition. */
export async function removeObject(client: StoreClient, key: string, signal: AbortSignal): Promise<boolean> {
  for (let round = 1; ; round++) {
    const found = await findObject(client, key, signal);
    if (found === undefined) return false;
    const headers: Record<string, string> = typeof found.headers.etag === "string" ? { "if-match": found.headers.etag } : {};
    try {
      await client.ask({ method: "DELETE", key, headers }, signal);
      return true;
    } catch (error) {
      // Removed meanwhile, maybe by an earlier attempt whose answer was lost.
      if (hasStatus(error, 404)) return error.isRepeated;
      if (!hasStatus(error, 412) || round === ROUNDS) throw error;
    }
  }
}
