import { ports, type Scope } from "@portico/core";
import type { RunRecord } from "../runs/run-record.ts";

/**
 * Whether a run can be followed (specification 6.1, open points 11): the process that accepted it lives, or a living process executes it.
 * In an instance with one process, only the first condition counts: after a restart, no earlier run is live.
 */
export function createIsLive(
  {
    engine,
    presence,
    instance,
  }: { readonly engine: ports.Engine; readonly presence: ports.Presence | undefined; readonly instance: string },
  scope: Scope,
): (run: RunRecord) => Promise<boolean> {
  if (!engine.isShared || !presence) return async (run) => run.instance === instance;
  presence.hold(seatOf(instance), {});
  scope.onClose(() => presence.release(seatOf(instance)));
  return async (run) => {
    if (run.instance === instance) return true;
    if ((await engine.status(run.runId))?.process !== undefined) return true;
    try {
      return (await presence.locate(seatOf(run.instance))) !== undefined;
    } catch (error) {
      // Unknown at present. If the process died, the follower receives no event for a while. A wrong 404 would make it give up a run that
      // continues.
      if (error instanceof ports.PresenceUnavailable) return true;
      throw error;
    }
  };
}

/** A process is registered like a socket: it disappears with its process. */
function seatOf(instance: string): string {
  return `workflow-service/${instance}`;
}
