import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { type RunCounts, summed, wordsOfCode } from "../../blocks/runs/run-counts.ts";
import { OUTCOME_WORDS, type Run } from "./run.ts";

type Counted = CallResult<typeof conversationsRunsContract.countRuns>;
export type RunGroup = Counted["groups"][number];

/** The cause of a group, in words. */
export function causeOf({ reason = "unknown", provider }: Pick<RunGroup, "reason" | "provider">): string {
  return provider === undefined ? wordsOfCode(reason) : `${wordsOfCode(reason)}, ${provider}`;
}

/** Counts of runs of agents, as their list shows them. */
export function toRunCounts({ total, complete, outcomes, groups }: Counted): RunCounts {
  return {
    total,
    isComplete: complete,
    outcomes: (Object.keys(OUTCOME_WORDS) as Run["outcome"][]).flatMap((outcome) => {
      const count = outcomes[outcome] ?? 0;
      return count === 0 ? [] : [{ ...OUTCOME_WORDS[outcome], count, filters: { outcome } }];
    }),
    lines: [
      {
        title: "Causes of failures",
        items: summed(groups, ({ outcome, reason }) =>
          outcome === "failed" && reason !== undefined ? { text: wordsOfCode(reason), filters: { outcome, reason } } : undefined,
        ),
      },
      { title: "Agents", items: summed(groups, ({ agent_id }) => ({ text: agent_id, filters: { agent_id } })) },
    ],
  };
}
