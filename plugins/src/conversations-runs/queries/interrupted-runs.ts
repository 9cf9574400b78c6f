import { setTimeout as pause } from "node:timers/promises";
import type { FindPlace, ports } from "@portico/core";
import type { Conversations } from "../conversations/conversations.ts";
import type { Run, Runs } from "../runs/runs.ts";

const PAUSE_MS = 5;
/** A start does not hang where a turn cannot be closed now. The turn is closed later. */
const PATIENCE_MS = 10_000;
const PAGE = 200;

/**
 * Resolves when the turns of queries are closed that executed when the earlier process ended: a client that looks right after the start finds
 * no run that only seems to execute (open points 9). Call it when the engine is ready. In a cluster, other processes close them without a
 * start, so this resolves at once.
 */
export async function untilInterruptedClosed(given: {
  readonly engine: ports.Engine;
  readonly runs: Runs;
  readonly conversations: Conversations;
}): Promise<void> {
  const { engine, runs, conversations } = given;
  if (engine.isShared) return;
  const until = performance.now() + PATIENCE_MS;

  /** Whether the run is still as it was, and the engine of this process has work of its session. */
  const isLeft = async ({ run_id: runId, conversation_id: conversationId, turn_started_at: began }: Run): Promise<boolean> => {
    const now = (await runs.find(runId))?.value;
    if (now?.status !== "running" || now.approvals || now.turn_started_at !== began || conversationId === undefined) return false;
    const turnId = (await conversations.find(conversationId))?.value.lastTurnId;
    const work = turnId === undefined ? undefined : await engine.status(turnId);
    // A process that stands by does not know the process of executing work.
    return work?.state === "waiting" || (work?.state === "executing" && work.process === engine.process);
  };

  for (const run of await runningRuns(runs)) while ((await isLeft(run)) && performance.now() < until) await pause(PAUSE_MS);
}

async function runningRuns(runs: Runs): Promise<readonly Run[]> {
  const found: Run[] = [];
  for (let after: FindPlace | undefined; ;) {
    const page = await runs.search({ status: "running" }, { limit: PAGE, after });
    found.push(...page.items.filter(({ background }) => !background));
    if (!page.next) return found;
    after = page.next;
  }
}
