import { defineAdapter, definePort, type Port } from "@portico/core";
import type { WorkflowRuntime } from "./workflow-runtime.ts";

/** Where the runtime is found by what must be there before it: agents can run workflows, and workflows agents. */
export interface WorkflowStarter {
  /** Set when the runtime is open. */
  runtime?: Pick<WorkflowRuntime, "catalogue" | "startRun"> | undefined;
}

export const workflowStarter: Port<WorkflowStarter> = definePort<WorkflowStarter>("workflow-service/starter");

/** Stands beside `workflowRuntime` in every preset that has it. */
export const openWorkflowStarter = defineAdapter({
  name: "workflow-service/starter",
  port: workflowStarter,
  needs: {},
  open: (): WorkflowStarter => ({}),
});
