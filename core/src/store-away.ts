import { EngineUnavailable } from "./ports/engine.ts";
import { LogUnavailable } from "./ports/log.ts";
import { RecordConflict, RecordsUnavailable } from "./ports/records.ts";
import { SealingUnavailable } from "./ports/sealing.ts";

/** Whether a store could not be reached. */
export function isStoreUnavailable(error: unknown): boolean {
  return (
    error instanceof LogUnavailable ||
    error instanceof RecordsUnavailable ||
    error instanceof EngineUnavailable ||
    error instanceof SealingUnavailable
  );
}

/** Whether a retry of a write can succeed a little later: the store is unavailable, or another caller wrote in between. */
export function isStoreAway(error: unknown): boolean {
  return isStoreUnavailable(error) || error instanceof RecordConflict;
}
