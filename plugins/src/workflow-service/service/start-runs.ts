import { hasMoreLevels, ports } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import type { Definition } from "../definition/definition.ts";
import { workflowErrors } from "../errors.ts";
import { nodeAt } from "../definition/node-at.ts";
import { secretPlaces } from "../definition/secret-places.ts";
import type { RunInput } from "../runner/run-work.ts";
import type { DoneNode } from "../runner/take-over.ts";
import { readFields } from "../runs/run-fields.ts";
import { newRunId } from "../runs/run-id.ts";
import type { ResumedRun, RunRecord } from "../runs/run-record.ts";
import type { RunRecords } from "../runs/run-records.ts";
import type { StoredDefinitions } from "../runs/stored-definitions.ts";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";
import { runContext, type SecretKeeper } from "../secrecy/secret-keeper.ts";
import { checkSchema } from "../schema-check.ts";

/** The kind of work that runs are to the engine. */
export const RUN_KIND = "workflow-run";

/** The facts about a run before it exists. */
export interface RunOrder {
  readonly definition: Definition;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Given where the same order again must be the same run. */
  readonly runId?: string | undefined;
  readonly userId?: string | undefined;
  /** The user whom the grant names. */
  readonly grantUserId?: string | undefined;
  readonly binding?:
    | { readonly id: string; readonly boardId?: string | undefined; readonly taskId?: string | undefined }
    | undefined;
  readonly parent?: RunRecord["parent"];
  readonly depth?: number | undefined;
  readonly schedule?: RunRecord["schedule"];
  /** Of a run that resumes another, with the definition of that run. */
  readonly resumes?: ResumedRun | undefined;
  readonly done?: Omit<DoneNode, "hidden"> | undefined;
  /** The run whose parameters it has. */
  readonly rerunOf?: string | undefined;
  /** Of a run that starts it: the values that may not be stored in clear text, beside the secrets of the configuration. */
  readonly secrecy?: RunSecrecy | undefined;
  /** Written in the same commit. */
  readonly writes?: readonly ports.Write[] | undefined;
}

export type StartRun = ReturnType<typeof createStartRun>;

/**
 * Accepts runs: durable when it resolves, with the record that shows it. Throws `invalid_parameters` with the places, RecordConflict where one of
 * the order's own writes is refused, and what stores throw.
 */
export function createStartRun(given: {
  readonly engine: ports.Engine;
  readonly runs: RunRecords;
  readonly definitions: StoredDefinitions;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly instance: string;
  readonly keeper: SecretKeeper;
  readonly checks: SchemaChecks;
  readonly telemetry: ports.Telemetry;
  /** The document that contains a definition. */
  pathOf(workflowId: string): string | undefined;
}) {
  const { engine, runs, definitions, clock, ids, instance, keeper, checks, telemetry, pathOf } = given;

  return async (order: RunOrder): Promise<{ readonly runId: string; readonly workflowId: string }> => {
    const {
      definition,
      userId,
      grantUserId,
      binding,
      parent,
      depth,
      secrecy,
      schedule,
      resumes,
      done,
      rerunOf,
      writes = [],
    } = order;
    // Nodes and tools give what models and servers said: no door has looked at it.
    if (hasMoreLevels(order.parameters, ports.NODE_OUTPUT_LEVELS)) {
      const message = `must have at most ${ports.NODE_OUTPUT_LEVELS} levels of lists and objects`;
      throw workflowErrors.invalid_parameters(undefined, { parameters: [{ path: "/", message }] });
    }
    const checked = await checkSchema(checks, definition.parameters, order.parameters);
    if ("faults" in checked) throw workflowErrors.invalid_parameters(undefined, { parameters: checked.faults });
    if (resumes) await definitions.renew(definition.hash);
    else await definitions.keep(definition, pathOf(definition.id) ?? definition.id);
    const now = clock.now();
    const runId = order.runId ?? newRunId(ids, now);
    const sensitive = secretPlaces(definition.parameters, checked.value);
    const kept = await (secrecy?.keep(runId, checked.value, sensitive) ??
      keeper.keep(runContext(runId), checked.value, { sensitive }));
    const parameterFields = readFields(definition.search?.parameters, checked.value, kept.value);
    const record: RunRecord = {
      ...{ runId, workflowId: definition.id, definition: definition.hash, name: definition.name },
      ...{ nodeCount: definition.graph.nodes.size, completedNodeCount: 0, status: "running", instance },
      startedAt: new Date(now).toISOString(),
      ...(userId !== undefined && { userId }),
      ...(grantUserId !== undefined && { grantUserId }),
      ...(binding && { bindingId: binding.id, boardId: binding.boardId, taskId: binding.taskId }),
      ...(parent && { parent }),
      ...(depth && { depth }),
      ...(schedule && { schedule }),
      ...(resumes && { resumes }),
      ...(rerunOf !== undefined && { rerunOf }),
      ...(parameterFields && { fields: { parameters: parameterFields } }),
    };
    const traceparent = telemetry.traceparent();
    const input: RunInput = {
      ...{ runId, parameters: kept.value },
      ...(kept.hidden && { hidden: kept.hidden }),
      ...(done && { done: await keptDone(runId, definition, done) }),
      ...(traceparent !== undefined && { traceparent }),
    };
    await engine.start(RUN_KIND, runId, input, { records: [...runs.begin(record), ...writes] });
    return { runId, workflowId: definition.id };
  };

  async function keptDone(runId: string, definition: Definition, done: Omit<DoneNode, "hidden">): Promise<DoneNode> {
    const sensitive = nodeAt(definition, done.nodeId)?.node.sensitive;
    const { value, hidden } = await keeper.keep(runContext(runId), done.output, { sensitive });
    return { ...done, output: value, ...(hidden && { hidden }) };
  }
}

/** Stores that do not answer leave it open whether something was accepted (specification 7.2). */
export function toServiceError(error: unknown): unknown {
  if (error instanceof ports.EngineFenced) return workflowErrors.workflow_owner_fenced(undefined, undefined, error);
  const isAway =
    error instanceof ports.EngineUnavailable ||
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.SealingUnavailable ||
    error instanceof ports.RecordConflict;
  return isAway ? workflowErrors.run_not_reserved(undefined, undefined, error) : error;
}
