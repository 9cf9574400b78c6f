import { parseJsonBody, ports, writeAgain } from "@portico/core";
import { workflowServiceContract } from "../contract.ts";
import type { KeyedStart } from "../service/keyed-starts.ts";
import { isOverflow, type RunOrder, toServiceError } from "../service/start-runs.ts";
import { type WorkflowHandlers, type WorkflowServices, toStoreError, grantedRun } from "./workflow-services.ts";
import type { Definition } from "../definition/definition.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { filesIn } from "../files/run-files.ts";
import type { ExecutionGrant } from "../access/grants.ts";
import { startDebounced } from "../service/start-debounced.ts";
import { newRunId } from "../runs/run-id.ts";
import { startedOrEnded } from "./history.ts";
import { isTerminal } from "../contracts/run-state.ts";

/** Starts a run with the service token. */
export function trigger(services: WorkflowServices): WorkflowHandlers["trigger"] {
  const { catalogue, keyedStarts } = services.runtime;
  return async ({ query: { id }, body, fail, ...call }) => {
    if (typeof id !== "string" || id === "") throw fail.id_required();
    const definition = catalogue.find(id);
    if (!definition) throw fail.workflow_not_found();
    const parameters = body === "" ? {} : parseJsonBody(workflowServiceContract.trigger, body);
    const begin = async (): Promise<StartedOnce> => {
      // Every holder of the service token is the same caller.
      const key = await keyedStarts.open({ head: call.head, workflowId: id, caller: ["service"], parameters });
      return triggered(services, { definition, parameters }, key);
    };
    const started = await begin().catch((error: unknown) => {
      throw toServiceError(error);
    });
    return startedOrEnded(services, call, started);
  };
}

/** Starts a run, or finds the run that a call with the same key has started. */
async function triggered(
  { runtime, ids, clock }: WorkflowServices,
  order: Pick<RunOrder, "definition" | "parameters">,
  key: KeyedStart | undefined,
): Promise<StartedOnce> {
  const { definition, parameters } = order;
  const { debounce } = definition;
  if (debounce) {
    const trigger = { definition, debounce, parameters, key, newRunId: () => newRunId(ids, clock.now()) };
    const { runId, isKnown, joins } = await startDebounced(runtime, clock, trigger);
    const told = { ...(isKnown && { duplicate: true as const }), ...(joins && { debounced: true as const }) };
    return { runId, workflowId: definition.id, status: "started", ...told };
  }
  if (!key) return { ...(await runtime.startRun(order)), status: "started" };
  return writeAgain(async () => {
    const known = await knownOf(key, order.definition.id);
    if (known) return known;
    const runId = newRunId(ids, clock.now());
    try {
      return { ...(await runtime.startRun({ ...order, runId, writes: [key.write(runId)] })), status: "started" };
    } catch (error) {
      // The run that takes the slot may be the one that another call with this key has just started.
      const other = isOverflow(error) ? await knownOf(key, order.definition.id) : undefined;
      if (!other) throw error;
      return other;
    }
  });
}

async function knownOf(key: KeyedStart | undefined, workflowId: string): Promise<StartedOnce | undefined> {
  const known = await key?.known();
  return known && { ...known, workflowId, status: "started", duplicate: true };
}

interface StartBody {
  readonly idempotencyKey: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** The answer of a call that starts a run. `duplicate`: an earlier call has started it. */
interface StartedOnce {
  readonly runId: string;
  readonly workflowId: string;
  readonly status: "started";
  readonly duplicate?: true;
  /** The run waits for triggers since an earlier one, and has the parameters of this call now. */
  readonly debounced?: true;
}

/** Starts the one run of an execution grant (open points 8). */
export function start(services: WorkflowServices): WorkflowHandlers["start"] {
  const { grants, clock, runtime } = services;
  const { catalogue, keyedStarts } = runtime;
  return async ({ body, fail, ...call }) => {
    const { executionGrantId, idempotencyKey, workflowId, definitionPath } = body;
    if (definitionPath !== undefined && isOutside(definitionPath)) throw fail.definition_path_forbidden();
    const grant = await grants.read(executionGrantId).catch(toStoreError);
    if (!grant) throw fail.execution_grant_invalid();
    const definition = workflowId === undefined ? catalogue.findByPath(documentOf(definitionPath!)) : catalogue.find(workflowId);
    // Before an earlier start with this grant is told. The definition may have been removed since then.
    if ((definition?.id ?? workflowId ?? grant.workflowId) !== grant.workflowId) throw fail.execution_grant_invalid();
    try {
      const { workflowId: id, userId, bindingId } = grant;
      const caller = ["grant", userId, bindingId];
      const key = await keyedStarts.open({ head: call.head, workflowId: id, caller, parameters: body.parameters });
      const known = (await knownOf(key, id)) ?? (await runOfGrant(services, grant, idempotencyKey));
      if (known) return await startedOrEnded(services, call, known);
      if (grant.expiresAt <= clock.now()) throw fail.execution_grant_invalid();
      if (!definition) throw fail.workflow_not_found();
      return await startedOrEnded(services, call, await startOnce(services, grant, definition, body, { key }));
    } catch (error) {
      throw toServiceError(error);
    }
  };
}

/** Cancels a run. */
export function cancel(services: WorkflowServices): WorkflowHandlers["cancel"] {
  return async ({ params, head, fail }) => {
    const { run, actor } = await grantedRun(services, params, head);
    const { runId, status } = run;
    if (isTerminal(status)) throw fail.run_ended();
    let isCancelled: boolean;
    try {
      const cancelRun = () => services.runtime.cancelRun(runId, "cancelled by request");
      const fact = { action: "workflow-run.cancel", object: runId, who: actor };
      isCancelled = await (services.audit?.attempt(fact, cancelRun) ?? cancelRun());
    } catch (error) {
      throw toServiceError(error);
    }
    if (!isCancelled) throw fail.run_ended();
    return { runId, accepted: true };
  };
}

/** Starts the run of a grant, or finds the run that another call with this grant has just started. */
export async function startOnce(
  services: WorkflowServices,
  grant: ExecutionGrant,
  definition: Definition,
  body: StartBody,
  /** `rerunOf`: the run whose parameters it has. */
  more: { readonly rerunOf?: string; readonly key?: KeyedStart | undefined } = {},
): Promise<StartedOnce> {
  // Its files may have been given to another run meanwhile.
  return writeAgain(async () => {
    try {
      return await startGranted(services, grant, definition, body, more);
    } catch (error) {
      if (!(error instanceof ports.RecordConflict || isOverflow(error))) throw error;
      const other = (await knownOf(more.key, grant.workflowId)) ?? (await runOfGrant(services, grant, body.idempotencyKey));
      if (!other) throw error;
      return other;
    }
  });
}

/** The run that a grant has started already: the same for the same key, and nothing for another (open points 8). */
export async function runOfGrant(
  { runtime: { usedGrants } }: WorkflowServices,
  { grantId, workflowId }: ExecutionGrant,
  idempotencyKey: string,
): Promise<StartedOnce | undefined> {
  const used = await usedGrants.find(grantId);
  if (!used) return undefined;
  if (used.idempotencyKey !== idempotencyKey) throw workflowErrors.execution_grant_invalid();
  return { runId: used.runId, workflowId, status: "started" as const, duplicate: true as const };
}

async function startGranted(
  { runtime, ids, clock }: WorkflowServices,
  { grantId, workflowId, userId, bindingId, expiresAt }: ExecutionGrant,
  definition: Definition,
  body: StartBody,
  { rerunOf, key }: { readonly rerunOf?: string; readonly key?: KeyedStart | undefined },
): Promise<StartedOnce> {
  const { bindings, usedGrants, startRun, files } = runtime;
  const binding = bindings.find(({ id }) => id === bindingId);
  if (bindingId !== undefined && binding?.workflowId !== workflowId) throw workflowErrors.execution_grant_invalid();
  const runId = newRunId(ids, clock.now());
  const use = usedGrants.use(grantId, { runId, idempotencyKey: body.idempotencyKey, expiresAt });
  const { parameters } = body;
  // In the commit that accepts the run: the other run may be removed before this one is executed.
  const shared = rerunOf === undefined ? undefined : await files?.shareWith(rerunOf, runId, filesIn(parameters));
  const writes = [use, ...(shared ?? []), ...(key ? [key.write(runId)] : [])];
  await startRun({ definition, parameters, runId, userId, grantUserId: userId, binding, rerunOf, writes });
  return { runId, workflowId, status: "started" as const };
}

/** A path that leads out of the folder of definitions, whether or not it exists. */
function isOutside(path: string): boolean {
  return /^(?:[/\\]|[A-Za-z]:)/.test(path) || path.split(/[/\\]/).includes("..");
}

function documentOf(path: string): string {
  return path.replace(/^(?:\.\/)+/, "");
}
