import { settingName } from "@portico/core";
import * as v from "valibot";
import { workflowErrors } from "../contracts/errors.ts";
import type { RunRecord } from "../runs/run-record.ts";

/** Runs of a workflow that belong to a task on a board (specification 4.2, task scope). */
export const binding = v.strictObject({
  id: v.pipe(settingName(), v.description("Id of the binding.")),
  workflowId: v.pipe(v.string(), v.nonEmpty(), v.description("Id of the bound workflow.")),
  boardId: v.optional(v.pipe(v.string(), v.nonEmpty(), v.description("Id of the board that its runs belong to."))),
  taskId: v.optional(v.pipe(v.string(), v.nonEmpty(), v.description("Id of the task that its runs belong to."))),
  readers: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.nonEmpty())),
      v.description("Users who may read its runs. Default: all holders of the service token."),
    ),
  ),
});

export type Binding = v.InferOutput<typeof binding>;

/** The task that a caller asks about. Only runs of this binding are returned. */
interface TaskScope {
  readonly bindingId: string;
}

type Parameter = string | readonly string[] | undefined;

/**
 * The task scope of a history call (specification 4.2); undefined if the call has no scope. It only filters and grants no rights. Throws
 * `invalid_request` for an invalid set of parameters, and `task_scope_forbidden` for a binding that does not match the workflow, board and task.
 */
export function readTaskScope(
  query: { readonly boardId?: Parameter; readonly workflowBindingId?: Parameter; readonly taskId?: Parameter },
  {
    workflowId,
    bindings,
    canRead,
  }: { readonly workflowId: string; readonly bindings: readonly Binding[]; readonly canRead: CanRead },
): TaskScope | undefined {
  const { boardId, workflowBindingId, taskId } = query;
  if (boardId === undefined && workflowBindingId === undefined && taskId === undefined) return undefined;
  if ([boardId, workflowBindingId, taskId].some((value) => Array.isArray(value)))
    throw workflowErrors.invalid_request("A parameter of the task scope is given twice");
  if (!boardId || !workflowBindingId || taskId === "")
    throw workflowErrors.task_scope_forbidden("A task scope needs boardId and workflowBindingId, and a taskId that is not empty");
  const binding = bindings.find(({ id }) => id === workflowBindingId);
  const isRight =
    binding?.workflowId === workflowId && binding.boardId === boardId && (taskId === undefined || binding.taskId === taskId);
  if (!binding || !isRight || !canRead(binding.id)) throw workflowErrors.task_scope_forbidden();
  return { bindingId: binding.id };
}

/** Whether the caller may read the runs of a binding. */
export type CanRead = (bindingId: string) => boolean;

/**
 * Whether the user of the service token may read a binding's runs: the users in its `readers`, or every holder of the token if it
 * has no `readers`. Runs of a removed binding cannot be read.
 */
export function canReadAs(userId: string | undefined, bindings: readonly Binding[]): CanRead {
  return (bindingId) => {
    const binding = bindings.find(({ id }) => id === bindingId);
    if (!binding) return false;
    return binding.readers === undefined || (userId !== undefined && binding.readers.includes(userId));
  };
}

/** Whether a run may be shown. Runs without a task may always be shown. */
export function isReadable({ bindingId }: Pick<RunRecord, "bindingId">, canRead: CanRead): boolean {
  return bindingId === undefined || canRead(bindingId);
}
