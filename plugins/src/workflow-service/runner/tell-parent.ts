import type { ports } from "@portico/core";
import type { RunRecord } from "../runs/run-records.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import { workName } from "../runs/work-name.ts";

/** What a run tells the one that started it. */
export interface ChildEnd {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  readonly outputs?: unknown;
  /** What is secret of the outputs. */
  readonly hidden?: Hidden | undefined;
  readonly message?: string | undefined;
}

/** The signal by which a run tells its end to the node that started it. */
export function childSignal(nodeId: string, runId: string): string {
  return workName(nodeId, `run ${runId}`);
}

/** Tells the end of a run to the one that started it, where one did; told again, the first counts. Throws what the engine throws. */
export async function tellParent(
  engine: ports.Engine,
  { runId, parent }: Pick<RunRecord, "runId" | "parent">,
  ended: ChildEnd,
): Promise<void> {
  if (parent) await engine.signal(parent.runId, childSignal(parent.nodeId, runId), ended);
}
