import type { CallResult } from "@portico/core/client";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { type RunCounts, summed, wordsOfCode } from "../../blocks/runs/run-counts.ts";
import { RUN_WORDS } from "./status-words.ts";
import type { RunStatus } from "./workflow-calls.ts";

type Counted = CallResult<typeof workflowServiceContract.countRuns>;
export type WorkflowRunGroup = Counted["groups"][number];

/** The cause of a group, in words. */
export function causeOf({ error = "unknown", nodeId }: Pick<WorkflowRunGroup, "error" | "nodeId">): string {
  return nodeId === undefined ? wordsOfCode(error) : `${wordsOfCode(error)}, at ${nodeId}`;
}

/** Counts of runs of workflows, as their list shows them. `workflowId`: all of them are of this workflow. */
export function toRunCounts({ total, complete, statuses, groups }: Counted, workflowId: string | undefined): RunCounts {
  return {
    total,
    isComplete: complete,
    outcomes: (Object.keys(RUN_WORDS) as RunStatus[]).flatMap((status) => {
      const count = statuses[status] ?? 0;
      return count === 0 ? [] : [{ ...RUN_WORDS[status], count, filters: { status } }];
    }),
    lines: [
      {
        title: "Causes of failures",
        items: summed(groups, (group) => {
          const { status, error, nodeId } = group;
          if (status !== "failed" || error === undefined) return undefined;
          return { text: causeOf(group), filters: { status, error, ...(nodeId !== undefined && { node: nodeId }) } };
        }),
      },
      ...(workflowId === undefined
        ? [
            {
              title: "Workflows",
              items: summed(groups, ({ workflowId: workflow }) => ({ text: workflow, filters: { workflow } })),
            },
          ]
        : []),
    ],
  };
}
