import { createHash } from "node:crypto";
import { hasMoreLevels, ports, ServiceError } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import canonicalize from "canonicalize";
import { type Definition, nodeAt, type StartKey } from "../definition/definition.ts";
import { ExpressionFailed } from "../expressions/expression.ts";
import type { EvaluateBeside } from "../expressions/expression-thread.ts";
import { evaluatedIn } from "../runner/node-values.ts";
import { replacedBy, type RunSlots, type SlotOrder, type TakenSlot } from "./run-slots.ts";
import { workflowErrors } from "../contracts/errors.ts";
import { secretPaths } from "../definition/secret-paths.ts";
import type { RunInput } from "../runner/run-work.ts";
import type { DoneNode } from "../runner/take-over.ts";
import { type FieldValues, readFields, type ResumedRun, type RunRecord } from "../runs/run-record.ts";
import { newRunId } from "../runs/run-id.ts";
import type { RunRecords } from "../runs/run-records.ts";
import type { StoredDefinitions } from "../runs/stored-definitions.ts";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";
import { type Hidden, runContext, type SecretKeeper } from "../secrecy/secret-keeper.ts";
import { checkSchema } from "../definition/schema-check.ts";
import { isNodeFailed } from "../runner/attempt.ts";
import type { ParametersTaken } from "../runs/ledger-entry.ts";
import { WORKFLOW_DEPTH } from "../contracts/limits.ts";

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
  /** Of a run that resumes another. */
  readonly resumes?: ResumedRun | undefined;
  readonly done?: Omit<DoneNode, "hidden"> | undefined;
  /** The run whose parameters it has. */
  readonly rerunOf?: string | undefined;
  /** Of a run that starts it: the values that may not be stored in clear text, beside the secrets of the configuration. */
  readonly secrecy?: RunSecrecy | undefined;
  /** The parameters, if they are checked already. */
  readonly read?: ReadParameters | undefined;
  /** Of a run that waits for further triggers. */
  readonly debounce?: RunRecord["debounce"];
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
  readonly slots: RunSlots;
  readonly evaluateBeside: EvaluateBeside;
  cancelRun(runId: string, reason: string): Promise<unknown>;
  /** The document that contains a definition. */
  pathOf(workflowId: string): string | undefined;
}) {
  const { engine, runs, definitions, clock, ids, instance, keeper, telemetry, slots, pathOf } = given;

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
      debounce,
      writes = [],
    } = order;
    const read = order.read ?? (await readParameters(given, definition, order.parameters));
    if (resumes && !resumes.isCurrent) await definitions.renew(definition.hash);
    else await definitions.store(definition, pathOf(definition.id) ?? definition.id);
    const now = clock.now();
    const runId = order.runId ?? newRunId(ids, now);
    const { stored, fields } = order.read?.sealed ?? (await sealParameters(given, { runId, definition, read, secrecy }));
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
      ...(fields && { fields: { parameters: fields } }),
      ...(debounce && { debounce }),
    };
    const traceparent = telemetry.traceparent();
    const input: RunInput = {
      ...{ runId, parameters: stored.value },
      ...(stored.hidden && { hidden: stored.hidden }),
      ...(done && { done: await keptDone(runId, definition, done) }),
      ...(traceparent !== undefined && { traceparent }),
    };
    const accept = async (taken?: TakenSlot): Promise<void> => {
      const begun = runs.begin(taken ? { ...record, slot: taken.slot } : record);
      await engine.start(RUN_KIND, runId, input, { records: [...begun, ...(taken ? [taken.write] : []), ...writes] });
    };
    // A start that is repeated must not need a second slot. A run that waits for further triggers needs one when it begins.
    const { slot } = read;
    if (!slot || debounce || (order.runId !== undefined && (await runs.find(runId)))) await accept();
    else {
      const replaced = await slots.enter({ ...slot, runId, workflowId: definition.id }, accept);
      for (const each of replaced) {
        // The run is accepted. What cannot be cancelled now is cancelled by the chore.
        await given.cancelRun(each, replacedBy(runId)).catch((error: unknown) => {
          telemetry.log.warn("A replaced run is cancelled later", { runId: each }, error);
        });
      }
    }
    return { runId, workflowId: definition.id };
  };

  async function keptDone(runId: string, definition: Definition, done: Omit<DoneNode, "hidden">): Promise<DoneNode> {
    const sensitive = nodeAt(definition, done.nodeId)?.node.sensitive;
    const { value, hidden } = await keeper.toStored(runContext(runId), done.output, { sensitive });
    return { ...done, output: value, ...(hidden && { hidden }) };
  }
}

/** The parameters of a start, checked and with their defaults. */
export interface ReadParameters {
  readonly value: Readonly<Record<string, unknown>>;
  /** The limit under which the run starts, with `concurrency`. */
  readonly slot?: SlotOrder | undefined;
  /** Their stored form. */
  readonly sealed?: SealedParameters | undefined;
}

/** The parameters of a run as they are stored, and the values by which it can be found. */
export interface SealedParameters {
  readonly stored: { readonly value: unknown; readonly hidden?: Hidden | undefined };
  readonly fields: FieldValues | undefined;
}

/** Checks the parameters of a start. Throws `invalid_parameters` with the places. */
export async function readParameters(
  given: { readonly checks: SchemaChecks; readonly evaluateBeside: EvaluateBeside },
  definition: Definition,
  parameters: Readonly<Record<string, unknown>>,
): Promise<ReadParameters> {
  // Nodes and tools give what models and servers said: no door has looked at it.
  if (hasMoreLevels(parameters, ports.NODE_OUTPUT_LEVELS)) {
    const message = `must have at most ${ports.NODE_OUTPUT_LEVELS} levels of lists and objects`;
    throw workflowErrors.invalid_parameters(undefined, { parameters: [{ path: "/", message }] });
  }
  const checked = await checkSchema(given.checks, definition.parameters, parameters);
  if ("faults" in checked) throw workflowErrors.invalid_parameters(undefined, { parameters: checked.faults });
  const { value } = checked;
  const { concurrency } = definition;
  if (!concurrency) return { value };
  const { limit, overflow, key } = concurrency;
  return { value, slot: { listId: await startKeyId(given, key, { definition, value }), limit, overflow } };
}

/** The id of the starts of a workflow that have the same key. Throws `invalid_parameters` if the key cannot be evaluated. */
export async function startKeyId(
  { evaluateBeside }: { readonly evaluateBeside: EvaluateBeside },
  key: StartKey | undefined,
  { definition, value }: { readonly definition: Definition; readonly value: ReadParameters["value"] },
): Promise<string> {
  const run = { id: "", workflowId: definition.id, startedAt: "" };
  try {
    const found =
      key &&
      (await evaluatedIn((results) => ({ parameters: value, nodes: {}, run, secrets: {}, results }), {
        expressions: key.expressions,
        evaluate: (scope) => key.fill(scope),
        evaluateBeside,
        // The time of each evaluation is limited.
        signal: () => new AbortController().signal,
      }));
    return `${definition.id}:${createHash("sha256")
      .update(canonicalize(found) ?? "")
      .digest("hex")}`;
  } catch (error) {
    if (!(error instanceof ExpressionFailed)) throw error;
    throw workflowErrors.invalid_parameters(undefined, { parameters: [{ path: "/", message: error.message }] });
  }
}

/** Makes the stored form of the parameters of a run. */
export async function sealParameters(
  { keeper }: { readonly keeper: SecretKeeper },
  given: {
    readonly runId: string;
    readonly definition: Definition;
    readonly read: ReadParameters;
    readonly secrecy?: RunSecrecy | undefined;
  },
): Promise<SealedParameters> {
  const { runId, definition, read, secrecy } = given;
  const { value } = read;
  const sensitive = secretPaths(definition.parameters, value);
  const stored = await (secrecy?.toStored(runId, value, sensitive) ?? keeper.toStored(runContext(runId), value, { sensitive }));
  return { stored, fields: readFields(definition.search?.parameters, value, stored.value) };
}

/** Whether a start was refused because of `concurrency`. */
export function isOverflow(error: unknown): error is ServiceError {
  return ServiceError.is(error) && (error.code === "workflow_busy" || error.code === "workflow_queue_full");
}

/** Stores that do not answer leave it open whether something was accepted (specification 7.2). */
export function toServiceError(error: unknown): unknown {
  if (error instanceof ports.EngineFenced) return workflowErrors.workflow_owner_fenced(undefined, undefined, error);
  const isAway =
    error instanceof ports.EngineUnavailable ||
    error instanceof ports.RecordsUnavailable ||
    error instanceof ports.SealingUnavailable ||
    error instanceof ports.SigningUnavailable ||
    error instanceof ports.RecordConflict;
  return isAway ? workflowErrors.run_not_reserved(undefined, undefined, error) : error;
}

/** The parameters of an earlier run, in plain form. Throws `run_not_resumable` if their secret parts cannot be opened. */
export async function openParameters(
  keeper: SecretKeeper,
  runId: string,
  { parameters: value, hidden }: ParametersTaken,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    const opened = await keeper.open(runContext(runId), { value, hidden });
    // They were checked when the run was accepted.
    return opened.value as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw isNodeFailed(error) ? notResumable(error.message) : error;
  }
}

/** The error with a reason for people. */
export function notResumable(reason: string): Error {
  return workflowErrors.run_not_resumable(`The run cannot be resumed: ${reason}`);
}

/** Why a run is not begun. */
export const TOO_DEEP = `Workflows run each other, also through agents, at most ${WORKFLOW_DEPTH} deep`;

/** The depth of a run that is started by a run at `depth`, or by no run (undefined). Returns undefined if that is too deep. */
export function depthBelow(depth: number | undefined): number | undefined {
  const below = depth === undefined ? 0 : depth + 1;
  return below > WORKFLOW_DEPTH ? undefined : below;
}
