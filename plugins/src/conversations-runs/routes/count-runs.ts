import { countRuns as countFound } from "@portico/core";
import { outcomeOf, reasonOf } from "../runs/run-outcome.ts";
import type { Run } from "../runs/runs.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { readRunSearch } from "./search-runs.ts";

/** Counts the runs that a search finds: an owner counts all, a member its own. */
export function countRuns({ runtime: { runs } }: ConversationServices): ConversationHandlers["countRuns"] {
  return async ({ query, who }) => {
    const search = readRunSearch(query, who);
    if (!search) return { total: 0, complete: true, outcomes: {}, groups: [], left_out: 0 };
    const outcomes: Record<string, number> = {};
    const { total, isComplete, groups, leftOut } = await countFound<Run>(
      (page) => runs.search(search, page),
      (run) => {
        const outcome = outcomeOf(run);
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        return [run.agent_id, outcome, reasonOf(run), run.failure?.provider];
      },
    );
    return {
      ...{ total, complete: isComplete, outcomes, left_out: leftOut },
      groups: groups.map(({ count, newest }) => ({ ...causeOf(newest), count, newest: exampleOf(newest) })),
    };
  };
}

function causeOf(run: Run) {
  const reason = reasonOf(run);
  const provider = run.failure?.provider;
  return {
    ...{ agent_id: run.agent_id, outcome: outcomeOf(run) },
    ...(reason !== undefined && { reason }),
    ...(provider !== undefined && { provider }),
  };
}

function exampleOf({ run_id, title, turn_ended_at, started_at, failure }: Run) {
  return {
    ...{ run_id, at: turn_ended_at ?? started_at },
    ...(title !== undefined && { title }),
    ...(failure && { message: failure.message }),
  };
}
