import { defineAdapter, defineManyPort, type ManyPort, ports } from "@portico/core";

/** Agents for `agent` nodes, where an instance has any. */
export interface WorkflowAgents {
  readonly turns: ports.BackgroundTurns;
}

/** Filled at most once: many, because workflows do without. */
export const workflowAgents: ManyPort<WorkflowAgents> = defineManyPort<WorkflowAgents>("workflow-service/agents");

/** Lets workflows give turns to the agents of the instance. For presets that have agents beside workflows. */
export const agentsForWorkflows = defineAdapter({
  name: "workflow-service/agents",
  port: workflowAgents,
  needs: { turns: ports.backgroundTurns },
  open: ({ turns }, _options: void): WorkflowAgents => ({ turns }),
});
