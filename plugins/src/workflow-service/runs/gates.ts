import type { ports } from "@portico/core";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";
import type { Answers } from "./answers.ts";
import { workName } from "./run-id.ts";

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
export function createGates(answers: Answers) {
  return {
    find: (runId: string, nodeId: string): Promise<GateDecision | undefined> => answers.find(runId, gateSignal(nodeId)),
    /**
     * Returns the decision that counts from now on: this one, or an earlier one. `sensitive` are the secret places of the gate's output.
     * `audited` records who decided, in the commit of the decision.
     */
    async decide(
      runId: string,
      nodeId: string,
      decided: GateDecision,
      sensitive?: SensitivePaths,
      audited?: { readonly audit: ports.Audit; readonly who: ports.AuditActor },
    ): Promise<CountingDecision> {
      // The decision itself, with which the run continues, is not hidden.
      const { decision, decidedAt, decidedBy, ...given } = decided;
      const earlier = await answers.give<GateDecision>(runId, gateSignal(nodeId), {
        open: { decision, decidedAt, decidedBy },
        given,
        sensitive: sensitive && ofGiven(sensitive),
        ...(audited && { audited: { ...audited, action: `gate.${decision}`, object: `${runId}/${nodeId}` } }),
      });
      return earlier ? { ...earlier, isEarlier: true } : decided;
    },
  };
}

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
