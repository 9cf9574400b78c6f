import { isDeepStrictEqual } from "node:util";
import { toSensitivePaths } from "../definition/sensitive-paths.ts";
import { type GateDecision, gateSignal } from "../runs/gates.ts";
import { checkSchema } from "../schema-check.ts";
import { toServiceError } from "../service/start-runs.ts";
import { grantedRun } from "./granted-run.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Approves or rejects at a gate. */
export function decide(services: WorkflowServices): WorkflowHandlers["decide"] {
  const { clock, engine, runtime, audit } = services;
  const { gates } = runtime;
  return async ({ params, body, head, fail }) => {
    const { run, actor } = await grantedRun(services, params, head);
    const gate = run.gates?.find(({ nodeId }) => body.nodeId === undefined || body.nodeId === nodeId);
    if (!gate) throw fail.gate_not_open();
    const { runId } = run;
    const { nodeId, form, sensitive } = gate;
    const checked = form && body.decision === "approve" ? checkSchema(form, body.values ?? {}) : { value: body.values ?? {} };
    if ("faults" in checked) throw fail.invalid_values(undefined, { values: checked.faults });
    const { decision, comment } = body;
    try {
      const decidedAt = new Date(clock.now()).toISOString();
      const given = { decision, comment, values: checked.value, decidedAt };
      const taken = await gates.decide(runId, nodeId, given, toSensitivePaths(sensitive), audit && { audit, who: actor });
      // The run may have received the decision before, by a call whose answer was lost: it accepts one.
      await engine.signal(runId, gateSignal(nodeId), null);
      if (!isSameDecision(taken, { decision, values: checked.value })) throw fail.gate_decided();
    } catch (error) {
      throw toServiceError(error);
    }
    return { runId, accepted: true, nodeId, decision };
  };
}

/** Whether it is the same decision again, and not that of another person with other values. */
function isSameDecision(taken: GateDecision, { decision, values }: Pick<GateDecision, "decision" | "values">): boolean {
  return taken.decision === decision && isDeepStrictEqual(taken.values ?? {}, values ?? {});
}
