import { setImmediate as nextTurn } from "node:timers/promises";
import type { ports } from "@portico/core";
import { turnIdOf } from "../background/background-turn.ts";
import type { Deliveries } from "../background/deliveries.ts";
import type { Conversations } from "../conversations/conversations.ts";
import { firstIdSuffix } from "../turns/turn.ts";
import type { RemovedRuns } from "./removed-runs.ts";
import type { Run, Runs } from "../runs/runs.ts";

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

  /** In pages. A page may be empty. */
  async function* oldRuns(at: number, before: string): AsyncGenerator<readonly Run[], void> {
    for await (const page of runs.before(`run_${firstIdSuffix(at)}`)) yield page.filter((run) => isOld(run, before));
    // The ids of runs with a key do not begin with their time.
    for await (const runIds of runs.oldest(before)) {
      const keyed = await Promise.all(runIds.filter((runId) => runId.startsWith("run_key_")).map((runId) => runs.find(runId)));
      yield keyed.flatMap((run) => (run && isOld(run.value, before) ? [run.value] : []));
    }
  }
  /**
   * Erases deliveries before the runs that delivered them: the runs name their agents, of which some may not exist any more, and the users to
   * whom the deliveries belong.
   */
  const eraseDeliveries = async (at: number, before: string, closing: AbortSignal): Promise<void> => {
    const agentIds = new Set((await agents.list()).map(({ id }) => id));
    for await (const page of oldRuns(at, before)) {
      if (closing.aborted) return;
      for (const run of page) if (run.background) agentIds.add(run.agent_id);
      await nextTurn();
    }
    for (const agentId of agentIds) await deliveries.note(agentId);
    for await (const noted of deliveries.noted()) {
      for (const agentId of noted) {
        if (closing.aborted) return;
        await deliveries.eraseBefore(agentId, before, closing);
      }
    }
  };

  return async (closing) => {
    await removed.finish(closing);
    if (keepRunsMs === undefined) return;
    const at = Math.max(clock.now() - Math.max(keepRunsMs, tombstoneRetentionMs, LEAST_KEPT_MS), 0);
    const before = new Date(at).toISOString();
    await eraseDeliveries(at, before, closing);
    for await (const page of oldRuns(at, before)) {
      for (const { run_id } of page) {
        if (closing.aborted) return;
        await removed.remove(run_id, mayRemove(before));
      }
      await nextTurn();
    }
    for await (const page of conversations.oldest({ before })) {
      for (const { id } of page) {
        if (closing.aborted) return;
        // Cleared, and not used since.
        await removed.removeConversation(id, ({ sessionId, updatedAt }) => sessionId === undefined && updatedAt < before);
      }
      await nextTurn();
    }
  };
}
