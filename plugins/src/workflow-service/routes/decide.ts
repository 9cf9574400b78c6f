import { isDeepStrictEqual } from "node:util";
import type { ports } from "@portico/core";
import { type GateDecision, type CountingDecision, gateSignal } from "../runs/gates.ts";
import { grantedRun, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import { toSensitivePaths } from "../secrecy/sensitive-paths.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import { checkSchema, type SchemaFault } from "../definition/schema-check.ts";
import { toServiceError } from "../service/start-runs.ts";

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

/** A decision as its caller gives it. */
export interface GivenDecision {
  readonly decision: "approve" | "reject";
  readonly comment?: string | undefined;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The decision that counts, and the values of the given decision with the form's defaults. Or the places of values that do not match the form. */
type TakenDecision =
  | { readonly faults: readonly SchemaFault[] }
  | { readonly taken: CountingDecision; readonly values: Readonly<Record<string, unknown>> };

/** Decides an open gate, or finds out how it was decided. The values are checked for approvals. Throws errors of the area. */
export async function takeDecision(
  { clock, engine, runtime, audit }: WorkflowServices,
  { runId, gate, actor }: { readonly runId: string; readonly gate: Gate; readonly actor: ports.AuditActor },
  { decision, comment, values }: GivenDecision,
): Promise<TakenDecision> {
  const { nodeId, form, sensitive } = gate;
  const { role, userId, tokenId } = actor;
  const decidedBy = { role, ...(userId !== undefined && { userId }), ...(tokenId !== undefined && { tokenId }) };
  try {
    const checked = form && decision === "approve" ? await checkSchema(runtime.checks, form, values) : { value: values };
    if ("faults" in checked) return checked;
    const decidedAt = new Date(clock.now()).toISOString();
    const given = { decision, comment, values: checked.value, decidedAt, decidedBy };
    const audited = audit && { audit, who: actor };
    const taken = await runtime.gates.decide(runId, nodeId, given, toSensitivePaths(sensitive), audited);
    // The run may have received the decision before, by a call whose answer was lost: it accepts one.
    await engine.signal(runId, gateSignal(nodeId), null);
    return { taken, values: checked.value };
  } catch (error) {
    throw toServiceError(error);
  }
}

/** Whether it is the same decision again, and not that of another person with other values. */
function isSameDecision(taken: GateDecision, { decision, values }: Pick<GateDecision, "decision" | "values">): boolean {
  return taken.decision === decision && isDeepStrictEqual(taken.values ?? {}, values ?? {});
}
