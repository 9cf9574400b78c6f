import * as v from "valibot";
import { RUN_STATUSES } from "./runs/run-state.ts";

const text = v.string();

/** Status of a run (specification 2.4). */
export const status = v.picklist(RUN_STATUSES);

/** Why a run failed, was cancelled or is interrupted. */
export const runError = v.object({ code: text, message: text, nodeId: v.optional(text) });

/** What models used for the nodes of a run (an extension). Fields that are not known are absent. */
export const usage = v.object({
  inputTokens: v.optional(v.number()),
  outputTokens: v.optional(v.number()),
  cost: v.optional(v.number()),
  currency: v.optional(text),
});

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
  completedAt: v.optional(text),
  totalDurationMs: v.optional(v.number()),
  error: v.optional(runError),
  usage: v.optional(usage),
  ...ownership,
});
