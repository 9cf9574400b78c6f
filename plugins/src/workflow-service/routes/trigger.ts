import { parseJsonBody } from "@portico/core";
import { workflowServiceContract } from "../contract.ts";
import { toServiceError } from "../service/start-runs.ts";
import type { WorkflowHandlers, WorkflowServices } from "./workflow-services.ts";

/** Starts a run with the service token. */
export function trigger({ runtime: { catalogue, startRun } }: WorkflowServices): WorkflowHandlers["trigger"] {
  return async ({ query: { id }, body, fail }) => {
    if (typeof id !== "string" || id === "") throw fail.id_required();
    const definition = catalogue.find(id);
    if (!definition) throw fail.workflow_not_found();
    const parameters = body === "" ? {} : parseJsonBody(workflowServiceContract.trigger, body);
    try {
      return { ...(await startRun({ definition, parameters })), status: "started" };
    } catch (error) {
      throw toServiceError(error);
    }
  };
}
