import { readParameters, record, reply } from "@portico/core/contract";
import * as v from "valibot";
import { agentErrors } from "./errors.ts";

const text = v.string();
/** One parameter as it came; twice is a list, and for the filters to refuse. */
const parameter = v.optional(v.union([text, v.array(text)]));

/** How the last turn of a run ended, or what it does now. `waiting`: for its beginning, for a person, or for another attempt. `cancelled`: its user
 * stopped it, or its caller left. */
export const OUTCOMES = ["running", "waiting", "completed", "failed", "interrupted", "cancelled"] as const;

/** The parameters of a search for runs that are criteria: `runs/runs.ts` defines them. */
export const runFilters = {
  q: parameter,
  status: parameter,
  started_from: parameter,
  started_before: parameter,
  agent_id: parameter,
  background: parameter,
  archived: parameter,
  interrupted: parameter,
  outcome: parameter,
  reason: parameter,
  ended_from: parameter,
  user_id: parameter,
  delegated_by: parameter,
  parent_run_id: parameter,
};

/** Runs of an agent with the same outcome and cause. */
const runGroup = v.object({
  agent_id: text,
  outcome: v.picklist(OUTCOMES),
  /** The code of the error, or the reason of the end. */
  reason: v.optional(text),
  /** The provider of the model call that failed. */
  provider: v.optional(text),
  count: v.number(),
  newest: v.object({
    run_id: text,
    title: v.optional(text),
    /** When its last turn ended, or else when it began (ISO 8601). */
    at: text,
    /** The error in words for its user. */
    message: v.optional(text),
  }),
});

/** Counts of runs: an extension of the specification. */
export const runCountRoutes = {
  countRuns: {
    method: "GET",
    path: "/api/runs/counts",
    summary: "Count the runs that a search finds, by outcome, and by agent and cause",
    query: readParameters(runFilters),
    success: reply.json(
      v.object({
        total: v.number(),
        /** False if older runs match as well: the newest are counted. */
        complete: v.boolean(),
        outcomes: record(text, v.number()),
        groups: v.array(runGroup),
        /** Groups beyond the limit. */
        left_out: v.number(),
      }),
    ),
    errors: { unauthorized: agentErrors.unauthorized, invalid_filter: agentErrors.invalid_filter },
  },
} as const;
