import { type Handlers, ports, auditActor, type RequestHead } from "@portico/core";
import type { workflowServiceContract } from "../contract.ts";
import type { DefinitionTests } from "../definition/definition-tests.ts";
import type { Grants, ExecutionGrant } from "../access/grants.ts";
import type { serviceGuard } from "../access/guards.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";
import { workflowErrors } from "../contracts/errors.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { isReadable, readTaskScope, type CanRead, canReadAs } from "../access/task-scope.ts";

/** The services that the routes of this area use. */
export interface WorkflowServices {
  readonly runtime: WorkflowRuntime;
  readonly grants: Grants;
  readonly audit: ports.Audit | undefined;
  readonly log: ports.EventLog;
  readonly engine: ports.Engine;
  readonly sealing: ports.Sealing;
  /** Without users of an instance, only bindings that name no readers are readable. */
  readonly identity: ports.Identity | undefined;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  /** Undefined: the schedules of definitions start nothing. */
  readonly schedules: ports.Schedules | undefined;
  /** Undefined: cases of definitions cannot be executed. */
  readonly tests: DefinitionTests | undefined;
  /** Aborts when the app closes. */
  readonly closing: AbortSignal;
}

/** The handlers of this area, by route. */
export type WorkflowHandlers = Handlers<typeof workflowServiceContract, { readonly service: ReturnType<typeof serviceGuard> }>;

/**
 * Whether a grant may use what a user gave to a run, such as its secret parameters. A grant without a user, and one of the instance's owner, may
 * do so for all users. Every grant may do so for a run without a user.
 */
export async function mayActAs(
  { identity }: WorkflowServices,
  userId: string | undefined,
  grant: Pick<ExecutionGrant, "userId">,
  signal: AbortSignal,
): Promise<boolean> {
  if (userId === undefined || grant.userId === undefined || grant.userId === userId) return true;
  return (await identity?.instanceOwner(signal)) === grant.userId;
}

const GRANT_HEADER = "x-execution-grant";

/**
 * A run that the holder of the grant in the header may decide about, and this holder. Throws `execution_grant_invalid` before anything is said of the run, and
 * `run_not_found`.
 */
export async function grantedRun(
  { grants, clock, runtime }: WorkflowServices,
  { id, runId }: { readonly id: string; readonly runId: string },
  head: RequestHead,
): Promise<{ readonly run: RunRecord; readonly grant: ExecutionGrant; readonly actor: ports.AuditActor }> {
  const presented = head.header(GRANT_HEADER);
  const grant = presented === undefined ? undefined : await grants.read(presented).catch(toStoreError);
  if (!grant || grant.workflowId !== id || grant.expiresAt <= clock.now()) throw workflowErrors.execution_grant_invalid();
  const run = await runtime.runs.findOf(id, runId).catch(toStoreError);
  // A grant under a binding is good for the runs of that binding.
  if (!run || (grant.bindingId !== undefined && run.bindingId !== grant.bindingId)) throw workflowErrors.run_not_found();
  return { run, grant, actor: auditActor({ role: "grant", userId: grant.userId, tokenId: grant.grantId }, head) };
}

/**
 * A run of a workflow that the caller may read, in the task scope of the call. Throws `run_not_found` also for another workflow's run and for one
 * that the caller may not read, and the errors of the scope.
 */
export async function readableRun(
  services: WorkflowServices,
  { id, runId }: { readonly id: string; readonly runId: string },
  query: Parameters<typeof readTaskScope>[0],
  signal: AbortSignal,
): Promise<RunRecord> {
  const { bindings, runs } = services.runtime;
  const canRead = await readerOf(services, signal);
  const scoped = readTaskScope(query, { workflowId: id, bindings, canRead });
  const run = await runs.findOf(id, runId).catch(toStoreError);
  if (!run || !isReadable(run, canRead)) throw workflowErrors.run_not_found();
  if (scoped && run.bindingId !== scoped.bindingId) throw workflowErrors.run_not_found();
  return run;
}

/** The runs that the caller may read. The service token has the rights of the instance's owner. */
export async function readerOf({ identity, runtime }: WorkflowServices, signal: AbortSignal): Promise<CanRead> {
  return canReadAs(await identity?.instanceOwner(signal), runtime.bindings);
}

/** For reads: throws `store_unavailable` where a store is away, and any other error as it is. The caller can ask again. */
export function toStoreError(error: unknown): never {
  const isAway =
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.LogUnavailable ||
    error instanceof ports.BlobsUnavailable ||
    error instanceof ports.SigningUnavailable ||
    error instanceof ports.SealingUnavailable;
  throw isAway ? workflowErrors.store_unavailable(undefined, undefined, error) : error;
}

/** The same values. Errors of reading them are translated by `toStoreError`. */
export async function* orStoreError<T>(read: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* read;
  } catch (error) {
    toStoreError(error);
  }
}
