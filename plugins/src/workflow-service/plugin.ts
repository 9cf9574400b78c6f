import { isDeepStrictEqual } from "node:util";
import { definePlugin, jsonList, parseJsonBody, ports } from "@portico/core";
import type { Definition } from "./definition/definition.ts";
import { workflowServiceConfig } from "./config.ts";
import { workflowServiceContract } from "./contract.ts";
import { definitionPage } from "./definition-page.ts";
import { workflowErrors } from "./errors.ts";
import { followRun, readFinalOutputs } from "./follow-run.ts";
import { createGrants, type ExecutionGrant } from "./grants.ts";
import { serviceGuard } from "./guards.ts";
import { isBound, runDetail, runSummary } from "./run-pages.ts";
import { type GateDecision, gateSignal } from "./runs/gates.ts";
import { readEntries } from "./runs/ledger.ts";
import { newRunId } from "./runs/run-id.ts";
import type { RunRecord } from "./runs/run-records.ts";
import { isTerminal } from "./runs/run-state.ts";
import { checkSchema } from "./schema-check.ts";
import { serviceAccess } from "./service-access.ts";
import { toServiceError } from "./service/start-runs.ts";
import { canReadAs, isReadable, readTaskScope } from "./task-scope.ts";
import { workflowRuntime } from "./workflow-runtime.ts";

const GRANT_HEADER = "x-execution-grant";

/** Workflows that administrators deploy: triggered, followed, approved and looked up by programs (specification 4.2). */
export const workflowService = definePlugin({
  name: "workflow-service",
  summary: "Workflows: triggering them, following their runs, deciding at their gates, and their history.",
  config: workflowServiceConfig,
  needs: {
    runtime: workflowRuntime,
    access: serviceAccess,
    log: ports.log,
    engine: ports.engine,
    signing: ports.signing,
    identity: ports.identity,
    clock: ports.clock,
    ids: ports.ids,
  },
  contract: workflowServiceContract,
  guards: ({ access }) => ({ service: serviceGuard(access) }),
  setup(given, _settings, scope) {
    const { runtime, log, engine, identity, clock } = given;
    const { catalogue, runs, live, gates, usedGrants, bindings, startRun, cancelRun, instance } = runtime;
    const grants = createGrants(given);
    const closing = new AbortController();
    scope.onClose(() => closing.abort());

    const reader = async (signal: AbortSignal) => canReadAs(await identity.instanceOwner(signal), bindings);

    /** Throws `run_not_found` for another workflow's run, and for one that the caller may not read. */
    const readableRun = async (workflowId: string, runId: string, signal: AbortSignal): Promise<RunRecord> => {
      const run = await runs.findOf(workflowId, runId).catch(toStoreError);
      if (!run || !isReadable(run, await reader(signal))) throw workflowErrors.run_not_found();
      return run;
    };

    /** A run that the holder of this grant may decide about. Throws `execution_grant_invalid` before anything is said of the run. */
    const grantedRun = async (
      { id, runId }: { readonly id: string; readonly runId: string },
      presented: string | undefined,
    ): Promise<RunRecord> => {
      const grant = presented === undefined ? undefined : await grants.read(presented).catch(toStoreError);
      if (!grant || grant.workflowId !== id || grant.expiresAt <= clock.now()) throw workflowErrors.execution_grant_invalid();
      const run = await runs.findOf(id, runId).catch(toStoreError);
      // A grant under a binding is good for the runs of that binding.
      if (!run || (grant.bindingId !== undefined && run.bindingId !== grant.bindingId)) throw workflowErrors.run_not_found();
      return run;
    };

    /** Starts the one run of a grant. */
    const startGranted = async (grant: ExecutionGrant, definition: Definition, body: StartBody) => {
      const { grantId, userId, bindingId, expiresAt } = grant;
      const binding = bindings.find(({ id }) => id === bindingId);
      if (bindingId !== undefined && binding?.workflowId !== grant.workflowId) throw workflowErrors.execution_grant_invalid();
      const runId = newRunId(given.ids, clock.now());
      const use = usedGrants.use(grantId, { runId, idempotencyKey: body.idempotencyKey, expiresAt });
      await startRun({ definition, parameters: body.parameters, runId, userId, binding, writes: [use] });
      return { runId, workflowId: grant.workflowId, status: "started" as const };
    };

    /** The run that a grant has started already: the same for the same key, and nothing for another (open points 8). */
    const runOfGrant = async ({ grantId, workflowId }: ExecutionGrant, idempotencyKey: string) => {
      const used = await usedGrants.find(grantId);
      if (!used) return undefined;
      if (used.idempotencyKey !== idempotencyKey) throw workflowErrors.execution_grant_invalid();
      return { runId: used.runId, workflowId, status: "started" as const, duplicate: true as const };
    };

    return {
      async workflows({ signal }) {
        const canRead = await reader(signal);
        const workflows = await Promise.all(
          catalogue.list().map(async ({ id, name, description, creator, graph }) => {
            const last = await runs.last(id).catch(toStoreError);
            return {
              ...{ id, name, description, creator, nodeCount: graph.nodes.size, dslPath: catalogue.pathOf(id) ?? id },
              ...(last && isReadable(last, canRead) && { lastRun: lastRunOf(last) }),
            };
          }),
        );
        return { workflows };
      },

      definition({ params: { id }, fail }) {
        const definition = catalogue.find(id);
        if (!definition) throw fail.workflow_not_found();
        return definitionPage(definition, catalogue.pathOf(id) ?? id);
      },

      async trigger({ query: { id }, body, fail }) {
        if (typeof id !== "string" || id === "") throw fail.id_required();
        const definition = catalogue.find(id);
        if (!definition) throw fail.workflow_not_found();
        const parameters = body === "" ? {} : parseJsonBody(workflowServiceContract.trigger, body);
        try {
          return { ...(await startRun({ definition, parameters })), status: "started" as const };
        } catch (error) {
          throw toServiceError(error);
        }
      },

      async events({ query: { runId }, signal, say, fail }) {
        if (typeof runId !== "string" || runId === "") throw fail.run_id_required();
        const run = (await runs.find(runId).catch(toStoreError))?.value;
        // 6.1: of a run that another process accepted nothing is live here. 4.2: what may not be read is not there.
        if (!run || run.instance !== instance || !isReadable(run, await reader(signal))) throw fail.run_not_found();
        return followRun({ run, runs, live, log, say, signal: AbortSignal.any([signal, closing.signal]) });
      },

      async runs({ params: { id }, query, signal, fail }) {
        const canRead = await reader(signal);
        const scoped = readTaskScope(query, { workflowId: id, bindings, canRead });
        if (!catalogue.find(id) && !(await runs.last(id).catch(toStoreError))) throw fail.workflow_not_found();
        const pages = scoped ? runs.newestBound(scoped.bindingId) : runs.newest(id);
        return jsonList(
          "runs",
          (async function* () {
            for await (const page of orStoreError(pages)) {
              yield page
                .filter((run) => run.workflowId === id && isReadable(run, canRead))
                .map((run) => runSummary(run, live.find(run.runId)?.completedNodeCount));
            }
          })(),
        );
      },

      async run({ params: { id, runId }, query, signal, fail }) {
        const scoped = readTaskScope(query, { workflowId: id, bindings, canRead: await reader(signal) });
        const run = await readableRun(id, runId, signal);
        if (scoped && run.bindingId !== scoped.bindingId) throw fail.run_not_found();
        const executing = live.find(runId);
        // Somebody may have come to it just now.
        await executing?.ledger.recall().catch(toStoreError);
        const entries = executing ? executing.ledger.read({ follow: false, signal }) : readEntries(log, runId, signal);
        return runDetail(run, orStoreError(entries), () => readFinalOutputs(log, runId).catch(toStoreError));
      },

      async start({ body, fail }) {
        const { executionGrantId, idempotencyKey, workflowId, definitionPath } = body;
        if (definitionPath !== undefined && isOutside(definitionPath)) throw fail.definition_path_forbidden();
        const grant = await grants.read(executionGrantId).catch(toStoreError);
        if (!grant) throw fail.execution_grant_invalid();
        try {
          const known = await runOfGrant(grant, idempotencyKey);
          if (known) return known;
          if (grant.expiresAt <= clock.now()) throw fail.execution_grant_invalid();
          if (workflowId !== undefined && workflowId !== grant.workflowId) throw fail.execution_grant_invalid();
          const definition =
            workflowId === undefined ? catalogue.findByPath(documentOf(definitionPath!)) : catalogue.find(workflowId);
          if (!definition) throw fail.workflow_not_found();
          if (definition.id !== grant.workflowId) throw fail.execution_grant_invalid();
          try {
            return await startGranted(grant, definition, body);
          } catch (error) {
            // Another call with this grant was quicker.
            const other = error instanceof ports.RecordConflict ? await runOfGrant(grant, idempotencyKey) : undefined;
            if (!other) throw error;
            return other;
          }
        } catch (error) {
          throw toServiceError(error);
        }
      },

      async decide({ params, body, head, fail }) {
        const run = await grantedRun(params, head.header(GRANT_HEADER));
        const gate = run.gates?.find(({ nodeId }) => body.nodeId === undefined || body.nodeId === nodeId);
        if (!gate) throw fail.gate_not_open();
        const { runId } = run;
        const { nodeId, form } = gate;
        const checked = form && body.decision === "approve" ? checkSchema(form, body.values ?? {}) : { value: body.values ?? {} };
        if ("faults" in checked) throw fail.invalid_values(undefined, { values: checked.faults });
        const { decision, comment } = body;
        try {
          const decidedAt = new Date(clock.now()).toISOString();
          const taken = await gates.decide(runId, nodeId, { decision, comment, values: checked.value, decidedAt });
          // The run may have been told before, by a call whose answer was lost: it listens once.
          await engine.signal(runId, gateSignal(nodeId), null);
          if (!isSameDecision(taken, { decision, values: checked.value })) throw fail.gate_decided();
        } catch (error) {
          throw toServiceError(error);
        }
        return { runId, accepted: true as const, nodeId, decision };
      },

      async cancel({ params, head, fail }) {
        const { runId, status } = await grantedRun(params, head.header(GRANT_HEADER));
        if (isTerminal(status)) throw fail.run_ended();
        let isCancelled: boolean;
        try {
          isCancelled = await cancelRun(runId, "cancelled by request");
        } catch (error) {
          throw toServiceError(error);
        }
        if (!isCancelled) throw fail.run_ended();
        return { runId, accepted: true as const };
      },

      createDefinition({ fail }) {
        throw fail.definition_endpoint_retired();
      },
      replaceDefinition({ fail }) {
        throw fail.definition_endpoint_retired();
      },
    };
  },
});

/** Of somebody who asks again, and not of another person who filled the form in otherwise. */
function isSameDecision(taken: GateDecision, { decision, values }: Pick<GateDecision, "decision" | "values">): boolean {
  return taken.decision === decision && isDeepStrictEqual(taken.values ?? {}, values ?? {});
}

interface StartBody {
  readonly idempotencyKey: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

function lastRunOf(run: RunRecord) {
  const { runId, status, completedAt, totalDurationMs } = run;
  return { runId, status, taskBoardBound: isBound(run), completedAt, totalDurationMs };
}

/** What leads out of the folder of definitions, whatever stands there. */
function isOutside(path: string): boolean {
  return /^(?:[/\\]|[A-Za-z]:)/.test(path) || path.split(/[/\\]/).includes("..");
}

function documentOf(path: string): string {
  return path.replace(/^(?:\.\/)+/, "");
}

async function* orStoreError<T>(read: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* read;
  } catch (error) {
    toStoreError(error);
  }
}

/** For reads: what was asked for can be asked for again. */
function toStoreError(error: unknown): never {
  const isAway =
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.LogUnavailable ||
    error instanceof ports.SigningUnavailable;
  throw isAway ? workflowErrors.store_unavailable(undefined, undefined, error) : error;
}
