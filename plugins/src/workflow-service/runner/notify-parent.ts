import type { ports } from "@portico/core";
import type { RunRecord } from "../runs/run-record.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import { workName } from "../runs/run-id.ts";

/** The message of an ended run to the run that started it. */
export interface ChildEnd {
  readonly status: "completed" | "failed" | "cancelled" | "interrupted";
  readonly outputs?: unknown;
  /** The secret parts of the outputs. */
  readonly hidden?: Hidden | undefined;
  readonly message?: string | undefined;
}

/** The signal with which a run reports its end to the node that started it. */
export function childSignal(nodeId: string, runId: string): string {
  return workName(nodeId, `run ${runId}`);
}

/** Reports the end of a run to the run that started it, if there is one. Only the first report counts. Throws errors of the engine. */
export async function notifyParent(
  engine: ports.Engine,
  { runId, parent }: Pick<RunRecord, "runId" | "parent">,
  ended: ChildEnd,
): Promise<void> {
  if (parent) await engine.signal(parent.runId, childSignal(parent.nodeId, runId), ended);
}
