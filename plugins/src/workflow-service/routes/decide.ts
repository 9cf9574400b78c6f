import { isDeepStrictEqual } from "node:util";
import type { GateDecision } from "../runs/gates.ts";
import { grantedRun } from "./granted-run.ts";
import { takeDecision } from "./take-decision.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Approves or rejects at a gate. */
export function decide(services: WorkflowServices): WorkflowHandlers["decide"] {
  return async ({ params, body, head, fail }) => {
    const { run, actor } = await grantedRun(services, params, head);
    const gate = run.gates?.find(({ nodeId }) => body.nodeId === undefined || body.nodeId === nodeId);
    if (!gate) throw fail.gate_not_open();
    const { runId } = run;
    const { nodeId } = gate;
    const { decision, comment, values = {} } = body;
    const result = await takeDecision(services, { runId, gate, actor }, { decision, comment, values });
    if ("faults" in result) throw fail.invalid_values(undefined, { values: result.faults });
    if (!isSameDecision(result.taken, { decision, values: result.values })) throw fail.gate_decided();
    return { runId, accepted: true, nodeId, decision };
  };
}

/** Whether it is the same decision again, and not that of another person with other values. */
function isSameDecision(taken: GateDecision, { decision, values }: Pick<GateDecision, "decision" | "values">): boolean {
  return taken.decision === decision && isDeepStrictEqual(taken.values ?? {}, values ?? {});
}
