import { ports } from "@portico/core";
import { type Definition, type Graph, withDependents, nodeAt } from "../definition/definition.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { hasNoResults, isResumableEnd, readResumableResults, type ResumableResults } from "../runs/resumable-results.ts";
import { newRunId } from "../runs/run-id.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { notResumable, openParameters, type RunOrder, toServiceError } from "../service/start-runs.ts";
import { grantedRun, mayActAs, toStoreError, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";
import { readChunks } from "../runs/ledger.ts";
import type { ParametersTaken } from "../runs/ledger-entry.ts";
import { startedOrEnded } from "./history.ts";
import { runOfGrant, startOnce } from "./start.ts";

interface ResumeBody {
  readonly idempotencyKey: string;
  readonly from?: string | undefined;
  readonly as: "again" | "done";
  readonly output?: unknown;
}

/**
 * Resumes a failed or interrupted run, or a cancelled run that resumes another, as a new run. The resumed run keeps its status (open points
 * 14).
 */
export function resume(services: WorkflowServices): WorkflowHandlers["resume"] {
  const { runtime, audit, clock, ids } = services;
  const { runs } = runtime;
  return async ({ params, head, body, signal, stopping, answerHeaders }) => {
    const { run, grant, actor } = await grantedRun(services, params, head);
    // The new run acts for the user of the resumed run.
    if (!(await mayActAs(services, run.userId, grant, signal))) throw workflowErrors.execution_grant_invalid();
    const { runId: oldId, workflowId } = run;
    const answer = (runId: string, more?: { readonly duplicate: true }) =>
      startedOrEnded(
        services,
        { head, signal, stopping, answerHeaders },
        { runId, workflowId, status: "started" as const, resumes: oldId, ...more },
      );
    const known = async () => {
      const found = await resumeOf(services, oldId, body.idempotencyKey);
      return found === undefined ? undefined : answer(found, { duplicate: true });
    };
    try {
      const before = await known();
      if (before) return before;
      const read = await runs.find(oldId);
      if (!read) throw workflowErrors.run_not_found();
      const runId = newRunId(ids, clock.now());
      const begin = () =>
        orderOf(services, read.value, body, signal, async (order) => {
          const writes = runs.resume(read, { runId, idempotencyKey: body.idempotencyKey });
          await runtime.startRun({ ...order, runId, writes });
        });
      try {
        await (audit?.attempt({ action: "workflow-run.resume", object: oldId, who: actor }, begin) ?? begin());
      } catch (error) {
        // Another call was quicker.
        const other = error instanceof ports.RecordConflict ? await known() : undefined;
        if (!other) throw error;
        return other;
      }
      return await answer(runId);
    } catch (error) {
      if (error instanceof ports.LogUnavailable) toStoreError(error);
      throw toServiceError(error);
    }
  };
}

/** Starts the deployed workflow anew with the parameters of a run. It is the one start of the grant. */
export function rerun(services: WorkflowServices): WorkflowHandlers["rerun"] {
  const { runtime, log, audit } = services;
  return async ({ params, head, body: { idempotencyKey, parameters, without }, signal, ...call }) => {
    const { run, grant, actor } = await grantedRun(services, params, head);
    // The new run acts for the user of the grant, with the parameters of the other.
    if (!(await mayActAs(services, run.userId, grant, signal))) throw workflowErrors.execution_grant_invalid();
    try {
      const known = await runOfGrant(services, grant, idempotencyKey);
      if (known) return await startedOrEnded(services, { head, signal, ...call }, known);
      const definition = runtime.catalogue.find(run.workflowId);
      if (!definition) throw workflowErrors.workflow_not_found();
      const taken = await firstEntry(log, run.runId);
      if (!taken) throw notResumable("its parameters are not stored");
      const opened = await openParameters(runtime.keeper, run.runId, taken);
      const left = new Set(without);
      const kept = Object.fromEntries(Object.entries(opened).filter(([name]) => !left.has(name)));
      const body = { idempotencyKey, parameters: { ...kept, ...parameters } };
      const begin = () => startOnce(services, grant, definition, body, { rerunOf: run.runId });
      const fact = { action: "workflow-run.rerun", object: run.runId, who: actor };
      const started = await (audit?.attempt(fact, begin) ?? begin());
      return await startedOrEnded(services, { head, signal, ...call }, started);
    } catch (error) {
      if (error instanceof ports.LogUnavailable) toStoreError(error);
      throw toServiceError(error);
    }
  };
}

/** The run that resumes this one, if it was started with this key. Throws `run_resumed` if it was started with another key. */
async function resumeOf({ runtime: { runs } }: WorkflowServices, runId: string, key: string): Promise<string | undefined> {
  const { resumedBy } = (await runs.find(runId))?.value ?? {};
  if (!resumedBy) return undefined;
  if (resumedBy.idempotencyKey === key) return resumedBy.runId;
  const newer = (await runs.find(resumedBy.runId))?.value;
  if (newer && hasNoResults(newer)) return undefined;
  throw workflowErrors.run_resumed(undefined, { runId: resumedBy.runId });
}

/** Checks that the run can be resumed in this way, and starts it while its definition is held. */
async function orderOf(
  { runtime, log }: WorkflowServices,
  run: RunRecord,
  { from, as, output }: ResumeBody,
  signal: AbortSignal,
  start: (order: RunOrder) => Promise<void>,
): Promise<void> {
  const { runId, workflowId, userId, grantUserId, bindingId, boardId, taskId, depth, schedule } = run;
  const { isComplete, parent } = run;
  if (!isResumableEnd(run)) throw notResumable(`its status is ${run.status}`);
  if (parent) throw notResumable(`run ${parent.runId} started it: resume that run`);
  if (!isComplete) throw notResumable("the results of its finished nodes are not known");
  const held = await runtime.definitions.hold(workflowId, run.definition);
  try {
    const { definition } = held;
    if (!definition) throw notResumable("its definition can no longer be used");
    const results = await readResumableResults(log, runId, { definition, signal });
    if (!results.parameters || results.isPartial) throw notResumable("a value is too large to be stored");
    const { repeat, done } = planOf(definition, results, { from, as });
    await start({
      definition,
      parameters: await openParameters(runtime.keeper, runId, results.parameters),
      ...{ userId, grantUserId, depth, schedule },
      binding: bindingId === undefined ? undefined : { id: bindingId, boardId, taskId },
      resumes: { runId, originalRunId: run.resumes?.originalRunId ?? runId, ...(repeat && { repeat }) },
      done: done === undefined ? undefined : doneNode(definition, done, output ?? null),
    });
  } finally {
    held.release();
  }
}

/** The nodes that are repeated although they had finished, and the node that counts as done. */
function planOf(
  definition: Definition,
  { finished, unfinished }: ResumableResults,
  { from, as }: Pick<ResumeBody, "from" | "as">,
): { readonly repeat?: readonly string[]; readonly done?: string | undefined } {
  const { graph } = definition;
  if (as === "done") {
    const done = from ?? onlyOne(unfinished);
    if (!unfinished.includes(done)) throw notResumable(`the node ${done} is not unfinished`);
    return { ...withAlways(graph, finished, []), done };
  }
  if (from === undefined || unfinished.includes(from)) return withAlways(graph, finished, []);
  if (!graph.nodes.has(from)) throw notResumable(`the definition has no node ${from} outside of map and loop`);
  return withAlways(graph, finished, finished.has(from) ? withDependents(graph, from) : []);
}

/** Also repeats the nodes with `if: always` that had run, or begun, before all their needs were finished, and what depends on them. */
function withAlways(
  graph: Graph,
  finished: ReadonlySet<string>,
  repeat: readonly string[],
): { readonly repeat?: readonly string[] } {
  const repeated = new Set(repeat);
  const isOpen = (id: string) => repeated.has(id) || !finished.has(id);
  // Every node comes after its needs.
  for (const { id, isAlways, needs } of graph.nodes.values())
    if (isAlways && needs.some(({ node }) => isOpen(node))) for (const each of withDependents(graph, id)) repeated.add(each);
  return repeated.size > 0 ? { repeat: [...repeated] } : {};
}

/** The innermost of the unfinished nodes, if there is only one. */
function onlyOne(unfinished: readonly string[]): string {
  const innermost = unfinished.filter((id) => !unfinished.some((other) => other.startsWith(`${id}[`)));
  if (innermost.length === 1) return innermost[0]!;
  throw notResumable(innermost.length === 0 ? "no node is unfinished" : `several nodes are unfinished: name one with from`);
}

function doneNode(definition: Definition, nodeId: string, output: unknown): NonNullable<RunOrder["done"]> {
  const { cases, rules } = nodeAt(definition, nodeId)!.node;
  if (!cases) return { nodeId, output };
  const { decision, case: named } = (typeof output === "object" && output !== null ? output : {}) as Record<string, unknown>;
  const taken = rules.gate ? decision : named;
  if (typeof taken === "string" && cases.has(taken)) return { nodeId, output, case: taken };
  throw notResumable(`the output of ${nodeId} must name its case: ${[...cases].join(", ")}`);
}

async function firstEntry(log: ports.EventLog, runId: string): Promise<ParametersTaken | undefined> {
  for await (const { entries } of readChunks(log, runId, { limit: 1 })) {
    const [first] = entries;
    return first?.kind === "parameters" && !first.isLeftOut ? first : undefined;
  }
  return undefined;
}
