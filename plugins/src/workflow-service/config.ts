import { Secret } from "@portico/core";
import * as v from "valibot";

const secret = v.instance(Secret);

/** Runs of a workflow that belong to a task on a board (specification 4.2, task scope). */
const binding = v.strictObject({
  id: v.string(),
  workflowId: v.string(),
  boardId: v.optional(v.string()),
  taskId: v.optional(v.string()),
  /** Users who may read its runs; absent: whoever holds the service token. */
  readers: v.optional(v.array(v.string())),
});

/** The plugin has no options: what runs need are the runtime's. */
export const workflowServiceConfig = v.strictObject({});

/** Options of the adapter `workflowRuntime`. */
export const workflowRuntimeConfig = v.strictObject({
  /** What definitions read as `secrets.NAME`; masked wherever it would show. */
  secrets: v.optional(v.record(v.string(), secret), {}),
  bindings: v.optional(v.array(binding), []),
  /** How long runs are kept after their end, in milliseconds; absent: for ever. */
  keepRunsMs: v.optional(v.pipe(v.number(), v.minValue(0))),
});

export type WorkflowRuntimeOptions = v.InferInput<typeof workflowRuntimeConfig>;
export type Binding = v.InferOutput<typeof binding>;
