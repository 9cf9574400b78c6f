import type { ports, Scope } from "@portico/core";
import { createLog, type LogBackend } from "./create-log.ts";

/** A log whose removed streams leave entries behind, which are nobody's and go in the background. */
export interface PurgingBackend extends LogBackend {
  /** Take what removed streams have left out of the store; resolves when it is done, or the signal aborts. */
  purge(signal: AbortSignal): Promise<void>;
}

/** The log port over such a backend: it purges at the start and after each removal, and no more when the scope closes. */
export function createPurgingLog(backend: PurgingBackend, scope: Scope): ports.EventLog {
  const closing = new AbortController();
  // What cannot be purged now is purged after the next removal, or the next start.
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
