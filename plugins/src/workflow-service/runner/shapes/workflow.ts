import { createHash } from "node:crypto";
import { ports } from "@portico/core";
import type { RunRecord } from "../../runs/run-records.ts";
import { workName } from "../../runs/work-name.ts";
import { insist } from "../insist.ts";
import { type Attempt, type NodePlay, parseInput, withRetries } from "../play-attempts.ts";
import { isNodeFailed, type NodeResult } from "../play-node.ts";
import { toldInTime } from "../told-in-time.ts";

interface ChildInput {
  readonly workflow: string;
  readonly parameters?: unknown;
}

/** What a run tells the one that started it, with the signal that was agreed on. */
export interface ChildEnd {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  /** As they are: a secret in them is masked where they are shown. */
  readonly outputs?: unknown;
  readonly message?: string | undefined;
}

/** The signal by which a child tells its end. */
function childSignal(nodeId: string, runId: string): string {
  return workName(nodeId, `run ${runId}`);
}

/** Tells the run that started another how that one ended. Throws what the engine throws. */
export async function tellParentOf(
  engine: Pick<ports.Engine, "signal">,
  { runId, parent, status, error }: Pick<RunRecord, "runId" | "parent" | "status" | "error">,
  outputs?: unknown,
): Promise<void> {
  if (!parent) return;
  const ended: ChildEnd = { status: status as ChildEnd["status"], outputs, message: error?.message };
  await engine.signal(parent.runId, childSignal(parent.nodeId, runId), ended);
}

/** Runs another workflow and waits for its end. A run that is cancelled, or over, takes those with it that it started. */
export function playChild(play: NodePlay): Promise<NodeResult> {
  const { running, node, nodeId } = play;
  const { context, world, record } = running;
  const { workflow, parameters = {} } = parseInput(node.rules, play.inputs) as ChildInput;
  return withRetries(play, async (attempt): Promise<Attempt> => {
    // The same after a crash, so that nothing is started twice.
    const end = createHash("sha256")
      .update(`${record.runId} ${nodeId} ${attempt}`)
      .digest("base64url")
      .replace(/[-_]/g, "")
      .slice(0, 24);
    const runId = `${record.runId.slice(0, "wrun_".length + 9)}${end}`;
    const start = () =>
      refusalOf(() =>
        insist(running, () => world.startChild({ runId, workflowId: workflow, parameters, parent: record, nodeId })),
      );
    try {
      const refused = await context.step(workName(nodeId, `start #${attempt}`), start, { repeatable: true });
      if (refused) return refused;
      const ended = await toldInTime<ChildEnd>(play, childSignal(nodeId, runId));
      if (ended?.status === "completed") return { isOk: true, output: ended.outputs ?? null };
      if (!ended) throw new ports.NodeFailed("timeout", "The run took too long", { retryable: false });
      return {
        isOk: false,
        code: `workflow_${ended.status}`,
        message: `Run ${runId} of ${workflow} ended as ${ended.status}${ended.message ? `: ${ended.message}` : ""}`,
        isFinal: false,
      };
    } catch (error) {
      if (isGivenUp(play, error)) await insist(running, () => world.cancelRun(runId, `Run ${record.runId} is over`));
      throw error;
    }
  });
}

/** Why something cannot be started, as the engine can remember it. */
async function refusalOf(start: () => Promise<void>): Promise<Attempt | null> {
  try {
    await start();
    return null;
  } catch (error) {
    if (!isNodeFailed(error)) throw error;
    return { isOk: false, code: error.code, message: error.message, isFinal: !error.retryable };
  }
}

/** Whether a node's own end is why it waits no more, and not that its process stops or gives memory back. */
export function isGivenUp({ running, frame }: NodePlay, error: unknown): boolean {
  const { signal } = running.context;
  if (signal.aborted) return signal.reason instanceof ports.WorkCancelled;
  return frame.signal.aborted || (error instanceof ports.NodeFailed && error.code === "timeout");
}
