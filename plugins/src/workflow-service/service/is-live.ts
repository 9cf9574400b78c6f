import { ports, type Scope } from "@portico/core";
import type { RunRecord } from "../runs/run-records.ts";

/**
 * Whether a run can be followed (specification 6.1, open points 11): the process that accepted it lives, or a living process executes it. In
 * an instance of one process, only the first of the two counts: after a restart, nothing is live of earlier runs.
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
      // Not known now. If the process died, the follower hears nothing for a while; a wrong 404 would make it give up a run that continues.
      if (error instanceof ports.PresenceUnavailable) return true;
      throw error;
    }
  };
}

/** A process is registered like a socket: it disappears with its process. */
function seatOf(instance: string): string {
  return `workflow-service/${instance}`;
}
