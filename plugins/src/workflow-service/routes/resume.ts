import { ports } from "@portico/core";
import { workflowErrors } from "../contracts/errors.ts";
import { hasNoResults, readParametersTaken } from "../runs/resumable-results.ts";
import { newRunId } from "../runs/run-id.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { doneNode, planResume, type ResumePlan } from "../service/plan-resume.ts";
import { notResumable, openParameters, type RunOrder, toServiceError } from "../service/start-runs.ts";
import {
  grantedRun,
  mayActAs,
  readableRun,
  toStoreError,
  type WorkflowHandlers,
  type WorkflowServices,
} from "./workflow-services.ts";
import { startedOrEnded } from "./history.ts";
import { runOfGrant, startOnce } from "./start.ts";

/**
 * Resumes a failed or interrupted run, or a cancelled run that resumes another, as a new run. The resumed run keeps its status (open points
 * 14).
 */
export function resume(services: WorkflowServices): WorkflowHandlers["resume"] {
  const { runtime, audit, clock, ids, log } = services;
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
        planResume({ ...runtime, log }, read.value, { ...body, runId }, signal, async (plan) => {
          const writes = runs.resume(read, { runId, idempotencyKey: body.idempotencyKey });
          await runtime.startRun({ ...orderOf(read.value, plan, body.output), runId, writes });
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

/** Shows what a resume would do, and starts nothing. */
export function readResumePlan(services: WorkflowServices): WorkflowHandlers["resumePlan"] {
  const { runtime, log } = services;
  return async ({ params, query, signal }) => {
    const { definition = "own", from, as = "again" } = query;
    const run = await readableRun(services, params, {}, signal);
    const order = { runId: run.runId, definition, from, as };
    try {
      return await planResume({ ...runtime, log }, run, order, signal, async (plan) => shownPlan(plan));
    } catch (error) {
      return toStoreError(error);
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
      const taken = await readParametersTaken(log, run.runId);
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

/** The order of the new run. */
function orderOf(run: RunRecord, plan: ResumePlan, output: unknown): Omit<RunOrder, "runId" | "writes"> {
  const { userId, grantUserId, bindingId, boardId, taskId, depth, schedule } = run;
  const { definition, parameters, read, resumes, done } = plan;
  return {
    ...{ definition, parameters, read, resumes, userId, grantUserId, depth, schedule },
    binding: bindingId === undefined ? undefined : { id: bindingId, boardId, taskId },
    done: done === undefined ? undefined : doneNode(definition, done, output ?? null),
  };
}

/** A plan as callers see it. */
function shownPlan({ definition, kept, repeated, done, compared }: ResumePlan) {
  const { changed = [], added = [], removed = [] } = compared ?? {};
  return {
    version: definition.hash,
    ...{ kept: [...kept], repeated: [...repeated] },
    ...{ changed: [...changed], added: [...added], removed: [...removed] },
    ...(done !== undefined && { done }),
  };
}
