import { setImmediate as nextTurn } from "node:timers/promises";
import type { ports } from "@portico/core";
import { turnIdOf } from "../background/background-turn.ts";
import type { Deliveries } from "../background/deliveries.ts";
import type { Conversations } from "../conversations/conversations.ts";
import { firstIdSuffix } from "../turns/new-id-suffix.ts";
import type { RemovedRuns } from "./removed-runs.ts";
import type { Run, Runs } from "./runs.ts";

/** How often old runs are removed. The first time is soon after the start, for services that do not run for an hour. */
export const RUNS_SWEEP: ports.ChoreOptions = { everyMs: 60 * 60_000, firstMs: 60_000 };

/** Ended work is remembered for a day: a key of a background turn must lead to its run for as long. */
const LEAST_KEPT_MS = 24 * 60 * 60_000;

/**
 * Removes runs whose last turn ended long ago, in small pieces. Runs that execute or wait, runs whose turns wait, and runs that another
 * open run started are kept.
 */
export function createSweepRuns(given: {
  readonly removed: RemovedRuns;
  readonly runs: Runs;
  readonly conversations: Conversations;
  readonly deliveries: Deliveries;
  readonly agents: ports.Agents;
  readonly engine: ports.Engine;
  readonly clock: ports.Clock;
  readonly keepRunsMs: number | undefined;
  readonly tombstoneRetentionMs: number;
}): (closing: AbortSignal) => Promise<void> {
  const { removed, runs, conversations, deliveries, agents, engine, clock, keepRunsMs, tombstoneRetentionMs } = given;

  const isOpen = async (workId: string | undefined): Promise<boolean> => {
    const state = workId === undefined ? undefined : (await engine.status(workId))?.state;
    return state === "waiting" || state === "executing";
  };
  const isOld = ({ updatedAt, started_at }: Run, before: string) => (updatedAt ?? started_at) < before;
  const mayRemove = (before: string) => async (run: Run, lastTurnId: string | undefined) => {
    if (!isOld(run, before) || (await isOpen(lastTurnId ?? turnIdOf(run.run_id)))) return false;
    const parentId = run.delegation?.parentRunId;
    return parentId === undefined || (await runs.find(parentId))?.value.status !== "running";
  };

  return async (closing) => {
    await removed.finish(closing);
    if (keepRunsMs === undefined) return;
    const at = Math.max(clock.now() - Math.max(keepRunsMs, tombstoneRetentionMs, LEAST_KEPT_MS), 0);
    const before = new Date(at).toISOString();
    const remove = async (runIds: readonly string[]): Promise<void> => {
      for (const runId of runIds) {
        if (closing.aborted) return;
        await removed.remove(runId, mayRemove(before));
      }
      await nextTurn();
    };
    for await (const page of runs.before(`run_${firstIdSuffix(at)}`)) {
      await remove(page.filter((run) => isOld(run, before)).map(({ run_id }) => run_id));
      if (closing.aborted) return;
    }
    // The ids of runs with a key do not begin with their time.
    for await (const runIds of runs.oldest({ before })) {
      await remove(runIds.filter((runId) => runId.startsWith("run_key_")));
      if (closing.aborted) return;
    }
    for await (const page of conversations.oldest({ before })) {
      for (const { id } of page) {
        if (closing.aborted) return;
        // Cleared, and not used since.
        await removed.removeConversation(id, ({ sessionId, updatedAt }) => sessionId === undefined && updatedAt < before);
      }
      await nextTurn();
    }
    for (const { id } of await agents.list()) {
      if (closing.aborted) return;
      await deliveries.eraseBefore(id, before, closing);
    }
  };
}
