import type { CallResult, Client } from "@portico/core/client";
import { executionGrantContract } from "@portico/plugins/workflow-service/execution-grants-contract";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import type { Instance } from "../../api/instance.ts";

export type WorkflowSummary = CallResult<typeof workflowServiceContract.workflows>["workflows"][number];
export type WorkflowDefinition = CallResult<typeof workflowServiceContract.definition>;
export type DefinitionNode = WorkflowDefinition["nodes"][number];
export type RunSummary = CallResult<typeof workflowServiceContract.runs>["runs"][number];
export type RunDetail = CallResult<typeof workflowServiceContract.run>;
export type NodeResult = NonNullable<RunDetail["nodeResults"]>[string];
export type NodeStatus = NodeResult["status"];
export type RunStatus = RunDetail["status"];
export type OpenGate = NonNullable<RunDetail["humanGate"]>;

/** Long enough for a call or two that follow at once. */
const GRANT_MS = 60_000;

/** Typed calls of the workflow service. */
export function workflowCalls({ workflow }: Instance): Client<typeof workflowServiceContract> {
  return workflow.client(workflowServiceContract);
}

/** A grant for what is done next, from the instance's owner. Throws CallFailed where none is issued. */
export async function issueGrant(instance: Instance, workflowId: string, bindingId?: string): Promise<string> {
  const { issue } = instance.client(executionGrantContract);
  const body = { workflowId, ttlMs: GRANT_MS, ...(bindingId !== undefined && { bindingId }) };
  return (await issue({ body })).executionGrantId;
}
