import { ports } from "@portico/core";
import { readPages } from "./read-pages.ts";
import { workName } from "./work-name.ts";

/** What a person, or the time, decided at a gate. */
export interface GateDecision {
  readonly decision: "approve" | "reject";
  readonly values?: Readonly<Record<string, unknown>> | undefined;
  readonly comment?: string | undefined;
  /** ISO 8601. */
  readonly decidedAt: string;
}

export type Gates = ReturnType<typeof createGates>;

/** The decisions of gates: the first one counts, whoever made it. Functions throw RecordsUnavailable. */
export function createGates(records: ports.Records) {
  const decisions = records.collection<GateDecision>({ name: "workflow-gates" });
  const keyOf = (runId: string, nodeId: string) => `${runId}:${workName(nodeId, "gate")}`;

  const find = async (runId: string, nodeId: string): Promise<GateDecision | undefined> =>
    (await decisions.get(keyOf(runId, nodeId)))?.value;

  return {
    find,
    /** What is decided from now on: this, or what was before. */
    async decide(runId: string, nodeId: string, decision: GateDecision): Promise<GateDecision> {
      try {
        return (await decisions.put(keyOf(runId, nodeId), decision, "absent")).value;
      } catch (error) {
        const earlier = error instanceof ports.RecordConflict ? await find(runId, nodeId) : undefined;
        if (!earlier) throw error;
        return earlier;
      }
    },
    /** Forget the decisions of runs that ended without coming to them again; normally a run's end forgets them. */
    async sweep(isOver: (runId: string) => Promise<boolean>, closing: AbortSignal): Promise<void> {
      for await (const items of readPages(decisions, {})) {
        for (const { id } of items) {
          if (closing.aborted) return;
          if (await isOver(id.slice(0, id.indexOf(":")))) await decisions.remove(id);
        }
      }
    },
    /** Nobody asks any more. */
    forget: (runId: string, nodeId: string): ports.Write => decisions.write.remove(keyOf(runId, nodeId)),
  };
}

/** The signal that wakes the run up whose gate was decided. */
export function gateSignal(nodeId: string): string {
  return workName(nodeId, "gate");
}
