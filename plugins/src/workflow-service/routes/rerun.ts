import { ports } from "@portico/core";
import { workflowErrors } from "../errors.ts";
import { readChunks } from "../runs/ledger.ts";
import type { ParametersTaken } from "../runs/ledger-entry.ts";
import { notResumable, openParameters } from "../service/run-parameters.ts";
import { toServiceError } from "../service/start-runs.ts";
import { grantedRun, mayActAs } from "./granted-run.ts";
import { runOfGrant, startOnce } from "./start.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Starts the deployed workflow anew with the parameters of a run. It is the one start of the grant. */
export function rerun(services: WorkflowServices): WorkflowHandlers["rerun"] {
  const { runtime, log, audit } = services;
  return async ({ params, head, body: { idempotencyKey, parameters, without }, signal }) => {
    const { run, grant, actor } = await grantedRun(services, params, head);
    // The new run acts for the user of the grant, with the parameters of the other.
    if (!(await mayActAs(services, run.userId, grant, signal))) throw workflowErrors.execution_grant_invalid();
    try {
      const known = await runOfGrant(services, grant, idempotencyKey);
      if (known) return known;
      const definition = runtime.catalogue.find(run.workflowId);
      if (!definition) throw workflowErrors.workflow_not_found();
      const taken = await firstEntry(log, run.runId);
      if (!taken) throw notResumable("its parameters are not stored");
      const opened = await openParameters(runtime.keeper, run.runId, taken);
      const left = new Set(without);
      const kept = Object.fromEntries(Object.entries(opened).filter(([name]) => !left.has(name)));
      const body = { idempotencyKey, parameters: { ...kept, ...parameters } };
      const begin = () => startOnce(services, grant, definition, body, run.runId);
      const fact = { action: "workflow-run.rerun", object: run.runId, who: actor };
      return await (audit?.attempt(fact, begin) ?? begin());
    } catch (error) {
      if (error instanceof ports.LogUnavailable) toStoreError(error);
      throw toServiceError(error);
    }
  };
}

async function firstEntry(log: ports.EventLog, runId: string): Promise<ParametersTaken | undefined> {
  for await (const { entries } of readChunks(log, runId, { limit: 1 })) {
    const [first] = entries;
    return first?.kind === "parameters" && !first.isLeftOut ? first : undefined;
  }
  return undefined;
}
