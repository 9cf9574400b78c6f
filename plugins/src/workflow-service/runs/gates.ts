import { ports, readPages } from "@portico/core";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";
import { type Hidden, runContext, type SecretKeeper } from "../secrecy/secret-keeper.ts";
import { workName } from "./run-id.ts";

/** The shown values are stored in it unchanged. */
interface StoredDecision extends GateDecision {
  readonly hidden?: Hidden | undefined;
}

/** The decision at a gate, by a person or by its timeout. */
export interface GateDecision {
  readonly decision: "approve" | "reject";
  readonly values?: Readonly<Record<string, unknown>> | undefined;
  readonly comment?: string | undefined;
  /** ISO 8601. */
  readonly decidedAt: string;
  /** The holder of the credential with which it was decided. The role `instance` is that of the timeout. */
  readonly decidedBy: Pick<ports.AuditActor, "role" | "userId" | "tokenId">;
}

/** The decision that counts. */
export interface CountingDecision extends GateDecision {
  /** An earlier call decided. */
  readonly isEarlier?: true | undefined;
}

export type Gates = ReturnType<typeof createGates>;

/** The decisions of gates. The first decision counts. Functions throw RecordsUnavailable and SealingUnavailable. */
export function createGates(records: ports.Records, keeper: SecretKeeper) {
  const decisions = records.collection<StoredDecision>({ name: "workflow-gates" });
  const keyOf = (runId: string, nodeId: string) => `${runId}:${workName(nodeId, "gate")}`;

  const find = async (runId: string, nodeId: string): Promise<GateDecision | undefined> => {
    const stored = (await decisions.get(keyOf(runId, nodeId)))?.value;
    if (!stored) return undefined;
    const { decision, decidedAt, decidedBy, hidden, ...given } = stored;
    const { value } = await keeper.open(runContext(runId), { value: given, hidden });
    return { ...value, decision, decidedAt, decidedBy };
  };

  return {
    find,
    /**
     * Returns the decision that counts from now on: this one, or an earlier one. `sensitive` are the secret places of the gate's output.
     * `audited` records who decided, in the commit of the decision.
     */
    async decide(
      runId: string,
      nodeId: string,
      { decision, decidedAt, decidedBy, ...given }: GateDecision,
      sensitive?: SensitivePaths,
      audited?: { readonly audit: ports.Audit; readonly who: ports.AuditActor },
    ): Promise<CountingDecision> {
      const { value, hidden } = await keeper.toStored(runContext(runId), given, { sensitive: sensitive && ofGiven(sensitive) });
      try {
        const stored = { ...value, decision, decidedAt, decidedBy, ...(hidden && { hidden }) };
        const write = decisions.write.put(keyOf(runId, nodeId), stored, "absent");
        const fact = { action: `gate.${decision}`, object: `${runId}/${nodeId}` };
        await (audited ? audited.audit.record({ ...fact, who: audited.who }, [write]) : records.batch([write]));
        return { ...given, decision, decidedAt, decidedBy };
      } catch (error) {
        const earlier = error instanceof ports.RecordConflict ? await find(runId, nodeId) : undefined;
        if (!earlier) throw error;
        return { ...earlier, isEarlier: true };
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
    /** The gate no longer needs a decision. */
    forget: (runId: string, nodeId: string): ports.Write => decisions.write.remove(keyOf(runId, nodeId)),
  };
}

/** The decision itself, with which the run continues, is not hidden. */
function ofGiven(sensitive: SensitivePaths): SensitivePaths {
  return sensitive.flatMap((path) => (path.length === 0 ? [["values"], ["comment"]] : [path]));
}

/** The output of a gate's node. */
export function gateOutput({ decision, values, comment, decidedAt, decidedBy }: GateDecision) {
  return { decision, values: values ?? {}, comment: comment ?? null, decidedAt, decidedBy };
}

/** The signal that wakes the run up whose gate was decided. */
export function gateSignal(nodeId: string): string {
  return workName(nodeId, "gate");
}
