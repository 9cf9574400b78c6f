import { deprecate } from "node:util";
import { defineAdapter, defineManyPort, type ManyPort } from "@portico/core";

const retired: ManyPort<object> = defineManyPort<object>("workflow-service/retired");
const nothing = (name: string) => defineAdapter({ name, port: retired, needs: {}, open: () => ({}) });

/** @deprecated The plugin `workflowService` brings what it did. Takes nothing, does nothing, and will be removed in the next minor version. */
export const openWorkflowStarter = deprecate(
  nothing("workflow-service/starter"),
  "openWorkflowStarter() does nothing any more: the plugin workflowService brings what it did. Remove it from the preset.",
  "PORTICO_WORKFLOW_STARTER",
);

/** @deprecated The plugin `workflowService` finds the instance's agents itself. Takes nothing, does nothing, and will be removed in the next minor version. */
export const agentsForWorkflows = deprecate(
  nothing("workflow-service/agents"),
  "agentsForWorkflows() does nothing any more: the plugin workflowService finds the instance's agents itself. Remove it from the preset.",
  "PORTICO_WORKFLOW_AGENTS",
);
