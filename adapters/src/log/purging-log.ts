import type { ports, Scope } from "@portico/core";
import { createLog, type LogBackend } from "./create-log.ts";

/** A log whose removed streams leave orphaned entries, which are deleted in the background. */
export interface PurgingBackend extends LogBackend {
  /** Delete the orphaned entries of removed streams. Resolves when it is done, or the signal aborts. */
  purge(signal: AbortSignal): Promise<void>;
}

/** The log port over such a backend. It purges at the start and after each removal, until the scope closes. */
export function createPurgingLog(backend: PurgingBackend, scope: Scope): ports.EventLog {
  const closing = new AbortController();
  // A failed purge is repeated after the next removal, or at the next start.
  const purge = () => backend.purge(closing.signal).catch(() => {});
  let purging = purge();
  scope.onClose(async () => {
    closing.abort();
    await purging;
  });
  return createLog({
    ...backend,
    async remove(stream) {
      const isRemoved = await backend.remove(stream);
      if (isRemoved) purging = purging.then(purge);
      return isRemoved;
    },
  });
}
