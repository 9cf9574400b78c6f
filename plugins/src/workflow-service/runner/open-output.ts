import { retryWhileStoreAway } from "@portico/core";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import type { Running } from "./running.ts";

/** Opens the stored output of an attempt or of another run. Throws NodeFailed if it cannot be opened. */
export function openOutput(
  running: Running,
  { output, hidden }: { readonly output?: unknown; readonly hidden?: Hidden | undefined },
): Promise<unknown> {
  return retryWhileStoreAway(running.storeRetry, () => running.secrecy.open(running.record.runId, { value: output, hidden }));
}
