import { EngineUnavailable } from "./ports/engine.ts";
import { LogUnavailable } from "./ports/log.ts";
import { RecordConflict, RecordsUnavailable } from "./ports/records.ts";

/** Whether a write of durable work may go better a little later: a store is away, or somebody else wrote in between. */
export function isStoreAway(error: unknown): boolean {
  return (
    error instanceof LogUnavailable ||
    error instanceof RecordsUnavailable ||
    error instanceof EngineUnavailable ||
    error instanceof RecordConflict
  );
}
