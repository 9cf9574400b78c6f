import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { routeTo } from "../../shell/route.svelte.ts";
import { causeOf as causeOfTurn } from "../runs/count-runs.ts";
import { causeOf as causeOfRun } from "../workflows/count-runs.ts";

/** Failed runs with one cause. */
export interface FailedCause {
  readonly key: string;
  readonly text: string;
  /** The agent or the workflow. */
  readonly where: string;
  readonly count: number;
  /** The address of the list of these runs. */
  readonly list: string;
  readonly newest: { readonly name: string; readonly href: string; readonly at: string; readonly message?: string | undefined };
}

/** The causes for which runs of agents failed since a time. */
export function ofAgents(
  { groups }: CallResult<typeof conversationsRunsContract.countRuns>,
  since: string,
): readonly FailedCause[] {
  return groups.map((group) => {
    const { agent_id: agent, reason = "", count, newest } = group;
    const filters = { outcome: "failed", agent_id: agent, reason, ended: since };
    return {
      key: JSON.stringify(["agent", agent, reason, group.provider]),
      text: causeOfTurn(group),
      where: `Agent ${agent}`,
      count,
      list: `${routeTo("runs")}?${new URLSearchParams(filters)}`,
      newest: { ...newest, name: newest.title ?? newest.run_id, href: routeTo("runs", newest.run_id) },
    };
  });
}

/** The causes for which runs of workflows failed since a time. */
export function ofWorkflows(
  { groups }: CallResult<typeof workflowServiceContract.countRuns>,
  since: string,
): readonly FailedCause[] {
  return groups.map((group) => {
    const { workflowId: workflow, error = "", nodeId = "", count, newest } = group;
    const filters = { of: "workflows", workflow, status: "failed", error, ...(nodeId !== "" && { node: nodeId }), ended: since };
    return {
      key: JSON.stringify(["workflow", workflow, error, nodeId]),
      text: causeOfRun(group),
      where: `Workflow ${workflow}`,
      count,
      list: `${routeTo("runs")}?${new URLSearchParams(filters)}`,
      newest: { ...newest, name: newest.runId, href: routeTo("workflows", workflow, newest.runId) },
    };
  });
}
