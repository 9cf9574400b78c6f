import type { ports } from "@portico/core";
import { toSensitivePaths } from "../definition/sensitive-paths.ts";
import { type CountingDecision, gateSignal } from "../runs/gates.ts";
import type { Gate } from "../runs/ledger-entry.ts";
import { checkSchema, type SchemaFault } from "../schema-check.ts";
import { toServiceError } from "../service/start-runs.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/** A decision as its caller gives it. */
export interface GivenDecision {
  readonly decision: "approve" | "reject";
  readonly comment?: string | undefined;
  readonly values: Readonly<Record<string, unknown>>;
}

/** The decision that counts, and the values of the given decision with the form's defaults. Or the places of values that do not match the form. */
export type TakenDecision =
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
