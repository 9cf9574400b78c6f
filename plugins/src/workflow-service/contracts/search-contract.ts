import { maxCharacters, modelUsage, readParameters, record, RUN_SEARCH, searchTime } from "@portico/core/contract";
import * as v from "valibot";
import { RUN_STATUSES } from "./run-state.ts";
import { FIELD_CHARACTERS, SEARCHED_FIELDS } from "./limits.ts";

const text = v.string();

/** Status of a run (specification 2.4). */
export const status = v.picklist(RUN_STATUSES);

/** Why a run failed, was cancelled or is interrupted. */
export const runError = v.object({ code: text, message: text, nodeId: v.optional(text) });

/** Specification 4.2: the task of a run, if it belongs to a task. */
export const ownership = {
  workflowBindingId: v.optional(text),
  boardId: v.optional(text),
  taskId: v.optional(text),
  userId: v.optional(text),
  parentRunId: v.optional(text),
  /** The schedule that started it, and the planned time, except of a start by hand (an extension). */
  schedule: v.optional(v.object({ name: text, plannedAt: v.optional(text) })),
};

/** A run in a list (specification 2.4). */
export const runSummary = v.object({
  runId: text,
  status,
  startedAt: text,
  nodeCount: v.number(),
  completedNodeCount: v.number(),
  taskBoardBound: v.boolean(),
  /** It waits for further triggers, or until an earlier run of its workflow ends. */
  queued: v.optional(v.literal(true)),
  completedAt: v.optional(text),
  totalDurationMs: v.optional(v.number()),
  error: v.optional(runError),
  /** What models used for its nodes (an extension). */
  usage: v.optional(modelUsage),
  ...ownership,
});

/** `NAME=VALUE`: the path of a declared field, and the whole value as a text. */
const field = v.pipe(text, v.regex(/^[A-Za-z_][^=]{0,400}=/, "NAME=VALUE"), maxCharacters(FIELD_CHARACTERS + 401));
const fields = v.optional(
  v.pipe(
    v.union([
      v.pipe(
        field,
        v.transform((one) => [one]),
      ),
      v.array(field),
    ]),
    v.maxLength(SEARCHED_FIELDS, `at most ${SEARCHED_FIELDS} fields`),
  ),
  [],
);

/** What runs are found by. All of it must match. A parameter that is named as a field of a stored run needs no other code. */
const runFilters = {
  workflowId: v.optional(v.pipe(text, v.regex(/^[A-Za-z0-9_-]{1,64}$/, "the id of a workflow"))),
  status: v.optional(status),
  /** The user for whom the run works. */
  userId: v.optional(v.pipe(text, v.minLength(1), maxCharacters(256))),
  startedFrom: v.optional(searchTime),
  startedBefore: v.optional(searchTime),
  /** The code of the error, and the ID of the node that failed. */
  error: v.optional(v.pipe(text, v.regex(/^[\w.-]{1,100}$/, "a code: 1-100 letters, digits, and the characters _ . -"))),
  node: v.optional(v.pipe(text, v.minLength(1), maxCharacters(256))),
  /** Runs that ended at this time or later. */
  endedFrom: v.optional(searchTime),
  /** Words of the error. */
  q: v.optional(v.pipe(text, maxCharacters(RUN_SEARCH.characters))),
  /** `NAME=VALUE`, repeatable. */
  parameter: fields,
  output: fields,
  /** The hash of the definition. */
  version: v.optional(v.pipe(text, v.regex(/^[0-9a-f]{64}$/, "the hash of a definition"))),
};

/** What a search for runs asks, with its page. */
export const searchQuery = readParameters({
  ...runFilters,
  limit: v.optional(
    v.pipe(text, v.regex(/^[1-9]\d{0,3}$/, "1 to 200"), v.transform(Number), v.maxValue(RUN_SEARCH.page.most, "1 to 200")),
    String(RUN_SEARCH.page.usual),
  ),
  cursor: v.optional(v.pipe(text, maxCharacters(1024))),
  before: v.optional(v.pipe(text, maxCharacters(1024))),
});

const values = v.optional(record(text, text));

/** A page of the runs that match. */
export const foundRuns = v.object({
  runs: v.array(
    v.object({
      workflowId: text,
      ...runSummary.entries,
      /** The hash of the definition. */
      version: text,
      /** The values of the declared fields, as texts. */
      fields: v.optional(v.object({ parameters: values, outputs: values })),
    }),
  ),
  /** The `cursor` of the next page. A page may have fewer runs than its limit, even 0, although there is a next page. */
  next: v.optional(text),
  /** The `before` of the page with newer runs. Absent on a page that begins with the newest. */
  previous: v.optional(text),
});

/** What a count of runs asks. */
export const countQuery = readParameters(runFilters);

/** How many runs match. */
export const countedRuns = v.object({
  total: v.number(),
  /** False if older runs match as well: the newest are counted. */
  complete: v.boolean(),
  statuses: record(text, v.number()),
  groups: v.array(
    v.object({
      workflowId: text,
      status,
      /** The code of the error, and the node that failed. */
      error: v.optional(text),
      nodeId: v.optional(text),
      count: v.number(),
      newest: v.object({
        runId: text,
        /** When it ended, or else when it began (ISO 8601). */
        at: text,
        /** The error in words. */
        message: v.optional(text),
      }),
    }),
  ),
  /** Groups beyond the limit. */
  leftOut: v.number(),
});
