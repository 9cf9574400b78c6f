import { modelUsage } from "@portico/core/contract";
import * as v from "valibot";
import { RUN_STATUSES } from "./runs/run-state.ts";

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
  completedAt: v.optional(text),
  totalDurationMs: v.optional(v.number()),
  error: v.optional(runError),
  /** What models used for its nodes (an extension). */
  usage: v.optional(modelUsage),
  ...ownership,
});
