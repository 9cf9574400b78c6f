import type { CallResult, Client } from "@portico/core/client";
import { executionGrantContract } from "@portico/plugins/workflow-service/execution-grants-contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import type { Instance } from "../../api/instance.ts";

export type WorkflowSummary = CallResult<typeof workflowServiceContract.workflows>["workflows"][number];
export type WorkflowDefinition = Omit<CallResult<typeof workflowServiceContract.definition>, "editable">;
export type DefinitionNode = WorkflowDefinition["nodes"][number];
export type FoundRun = CallResult<typeof workflowServiceContract.searchRuns>["runs"][number];
/** The fields by which the runs of a workflow can be found. */
export type SearchFields = NonNullable<WorkflowDefinition["search"]>;
export type RunDetail = CallResult<typeof workflowServiceContract.run>;
export type NodeResult = NonNullable<RunDetail["nodeResults"]>[string];
export type NodeStatus = NodeResult["status"];
export type ResumePlan = CallResult<typeof workflowServiceContract.resumePlan>;
export type RunStatus = RunDetail["status"];
export type OpenGate = NonNullable<RunDetail["humanGate"]>;

/** Long enough for one or two calls that follow immediately. */
const GRANT_MS = 60_000;

/** Typed calls of the workflow service. */
export function workflowCalls({ workflow }: Instance): Client<typeof workflowServiceContract> {
  return workflow.client(workflowServiceContract);
}

/** A grant of the instance's owner for the next calls. Throws CallFailed if none can be issued. */
export async function issueGrant(instance: Instance, workflowId: string, bindingId?: string): Promise<string> {
  const { issue } = instance.client(executionGrantContract);
  const body = { workflowId, ttlMs: GRANT_MS, ...(bindingId !== undefined && { bindingId }) };
  return (await issue({ body })).executionGrantId;
}

/** Decides at a gate, as the instance's owner. Throws CallFailed. */
export async function decideGate(
  instance: Instance,
  run: Pick<RunDetail, "workflowId" | "runId" | "workflowBindingId">,
  body: {
    readonly decision: "approve" | "reject";
    readonly nodeId: string;
    readonly comment?: string;
    readonly values?: Record<string, unknown>;
  },
) {
  const grant = await issueGrant(instance, run.workflowId, run.workflowBindingId);
  const params = { id: run.workflowId, runId: run.runId };
  return workflowCalls(instance).decide({ params, headers: { "x-execution-grant": grant }, body });
}

/** A grant of the instance's owner to test and write a definition with the next calls. Throws CallFailed if none can be issued. */
export async function issueEditingGrant(instance: Instance, workflowId: string): Promise<string> {
  const { issue } = instance.client(executionGrantContract);
  return (await issue({ body: { workflowId, edits: true, ttlMs: GRANT_MS } })).executionGrantId;
}
