import { type ports, ServiceError } from "@portico/core";
import type { SchemaChecks } from "@portico/core/kit";
import { workflowErrors } from "../contracts/errors.ts";
import { type Definition, type Graph, nodeAt, outermost, withDependents } from "../definition/definition.ts";
import type { Catalogue } from "../definition/open-catalogue.ts";
import type { ReadWritten } from "../definition/read-definitions.ts";
import type { EvaluateBeside } from "../expressions/expression-thread.ts";
import { isResumableEnd, readParametersTaken, readResumableResults, type ResumableResults } from "../runs/resumable-results.ts";
import type { ResumedRun, RunRecord } from "../runs/run-record.ts";
import type { StoredDefinitions } from "../runs/stored-definitions.ts";
import type { SecretKeeper } from "../secrecy/secret-keeper.ts";
import { compareDefinitions, type ComparedNodes } from "./compare-definitions.ts";
import { notResumable, openParameters, type ReadParameters, readParameters } from "./start-runs.ts";

/** How a run is resumed. */
export interface ResumeOrder {
  /** The id of the new run. */
  readonly runId: string;
  /** `own`: the definition that the run started with. `current`: the deployed one. */
  readonly definition: "own" | "current";
  /** The hash of the definition that the caller expects. Default: any. */
  readonly version?: string | undefined;
  readonly from?: string | undefined;
  readonly as: "again" | "done";
}

/** What a new run will do. Ids are those of nodes outside of `map` and `loop`, except `done`. */
export interface ResumePlan {
  readonly definition: Definition;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Set with another definition than that of the run. */
  readonly read?: ReadParameters | undefined;
  readonly resumes: ResumedRun;
  /** The node that counts as done. */
  readonly done?: string | undefined;
  readonly kept: readonly string[];
  /** Nodes that had begun in the run, and are executed again or go on. */
  readonly repeated: readonly string[];
  readonly compared?: ComparedNodes | undefined;
}

/** What a plan is made from. */
export interface Planning {
  readonly catalogue: Pick<Catalogue, "find">;
  readonly definitions: Pick<StoredDefinitions, "hold" | "textOf">;
  readonly readText: ReadWritten;
  readonly keeper: SecretKeeper;
  readonly checks: SchemaChecks;
  readonly evaluateBeside: EvaluateBeside;
  readonly log: ports.EventLog;
}

/**
 * Plans how a run is resumed, and calls `use` while the definition is held. Throws `run_not_resumable` and `resume_plan_outdated`, and
 * with the present definition `workflow_not_found` and `invalid_parameters`.
 */
export async function planResume<T>(
  planning: Planning,
  run: RunRecord,
  order: ResumeOrder,
  signal: AbortSignal,
  use: (plan: ResumePlan) => Promise<T>,
): Promise<T> {
  const { parent, isComplete, workflowId } = run;
  if (!isResumableEnd(run)) throw notResumable(`its status is ${run.status}`);
  if (parent) throw notResumable(`run ${parent.runId} started it: resume that run`);
  if (!isComplete) throw notResumable("the results of its finished nodes are not known");
  if (order.definition === "current") {
    const definition = planning.catalogue.find(workflowId);
    if (!definition) throw workflowErrors.workflow_not_found();
    return use(await planOf(planning, run, definition, order, signal));
  }
  const held = await planning.definitions.hold(workflowId, run.definition);
  try {
    if (!held.definition) throw notResumable("its definition can no longer be used");
    return await use(await planOf(planning, run, held.definition, order, signal));
  } finally {
    held.release();
  }
}

async function planOf(
  planning: Planning,
  run: RunRecord,
  definition: Definition,
  { runId: newId, definition: chosen, version, from, as }: ResumeOrder,
  signal: AbortSignal,
): Promise<ResumePlan> {
  if (version !== undefined && version !== definition.hash) throw workflowErrors.resume_plan_outdated();
  const { log, keeper } = planning;
  const { runId } = run;
  const taken = await readParametersTaken(log, runId);
  if (!taken) throw notResumable("a value is too large to be stored");
  const parameters = await openParameters(keeper, runId, taken);
  const isOther = definition.hash !== run.definition;
  const read = isOther ? await readParameters(planning, definition, parameters) : undefined;
  const compared = read && (await comparedNodes(planning, run, { definition, parameters, now: read.value }));
  const results = await readResumableResults(log, runId, { definition, repeat: compared?.unfit, signal });
  if (results.isPartial) throw notResumable("a value is too large to be stored");
  const { repeat = [], done } = choose(definition, results, { from, as, unfit: compared?.unfit ?? [] });
  const repeated = new Set(repeat);
  const begun = new Set([...results.finished, ...results.unfinished].map(outermost));
  const ids = [...definition.graph.nodes.keys()].filter((id) => begun.has(id));
  const isKept = (id: string) => results.finished.has(id) && !repeated.has(id);
  return {
    ...{ definition, parameters, read, compared, done },
    resumes: resumedRun(run, { newId, repeat, isCurrent: chosen === "current", compared }),
    kept: ids.filter(isKept),
    repeated: ids.filter((id) => !isKept(id) && id !== done),
  };
}

/** How the run of a `workflow` node is resumed with the present definition, which may be another than that of the run. */
export async function planChild(
  planning: Planning,
  earlier: RunRecord,
  order: { readonly runId: string; readonly definition: Definition; readonly parameters: Readonly<Record<string, unknown>> },
): Promise<ResumedRun> {
  const { definition, parameters: now } = order;
  // The step of the parent's node that asks for it is not aborted.
  const { signal } = new AbortController();
  if (definition.hash === earlier.definition) return resumedRun(earlier, { newId: order.runId, isCurrent: true });
  const taken = await readParametersTaken(planning.log, earlier.runId);
  const parameters = taken && (await openParameters(planning.keeper, earlier.runId, taken).catch(undefinedIfUnreadable));
  const compared = await comparedNodes(planning, earlier, { definition, parameters, now });
  const results = await readResumableResults(planning.log, earlier.runId, { definition, repeat: compared.unfit, signal });
  const { repeat } = withAlways(definition.graph, results.finished, compared.unfit);
  return resumedRun(earlier, { newId: order.runId, isCurrent: true, repeat, compared });
}

function undefinedIfUnreadable(error: unknown): undefined {
  if (ServiceError.is(error) && error.code === "run_not_resumable") return undefined;
  throw error;
}

/** The facts about the resumed run in the record of the new run. */
export function resumedRun(
  { runId, resumes: before }: RunRecord,
  given: {
    readonly newId: string;
    readonly repeat?: readonly string[];
    /** Whether it has the present definition. */
    readonly isCurrent?: boolean;
    /** If that is another one. */
    readonly compared?: ComparedNodes | undefined;
  },
): ResumedRun {
  const { newId, repeat = [], isCurrent, compared } = given;
  // The request of such a node may be another one: a server that knows its key would answer it with the result of the earlier request.
  const renewed = { ...before?.renewed, ...Object.fromEntries((compared?.unfit ?? []).map((id) => [id, newId])) };
  return {
    ...{ runId, originalRunId: before?.originalRunId ?? runId },
    ...(repeat.length > 0 && { repeat }),
    ...(isCurrent && { isCurrent: true as const }),
    ...(Object.keys(renewed).length > 0 && { renewed }),
  };
}

async function comparedNodes(
  { definitions, readText }: Planning,
  run: RunRecord,
  given: {
    readonly definition: Definition;
    readonly parameters: Readonly<Record<string, unknown>> | undefined;
    /** The parameters of the new run. */
    readonly now: Readonly<Record<string, unknown>>;
  },
): Promise<ComparedNodes> {
  const text = await definitions.textOf(run.workflowId, run.definition);
  const [old, written] = await Promise.all([text === undefined ? undefined : readText(text), readText(given.definition.text)]);
  if (old === undefined || written === undefined) throw notResumable("its definition can no longer be read");
  return compareDefinitions({ written: old, parameters: given.parameters }, given.definition, { written, parameters: given.now });
}

/** The nodes that are repeated although they had finished, and the node that counts as done. */
function choose(
  definition: Definition,
  { finished, unfinished }: ResumableResults,
  { from, as, unfit }: Pick<ResumeOrder, "from" | "as"> & { readonly unfit: readonly string[] },
): { readonly repeat: readonly string[]; readonly done?: string | undefined } {
  const { graph } = definition;
  if (as === "done") {
    // Nodes that are repeated only because they have changed did finish.
    const done = from ?? onlyOne(unfinished.filter((id) => !unfit.includes(outermost(id))));
    if (!unfinished.includes(done)) throw notResumable(`the node ${done} is not unfinished`);
    // Another item may have its place now.
    if (done !== outermost(done) && unfit.includes(outermost(done)))
      throw notResumable(`the node ${outermost(done)} differs in the present definition: its inner nodes cannot count as done`);
    return { ...withAlways(graph, finished, unfit), done };
  }
  if (from === undefined || unfinished.includes(from)) return withAlways(graph, finished, unfit);
  if (!graph.nodes.has(from)) throw notResumable(`the definition has no node ${from} outside of map and loop`);
  return withAlways(graph, finished, finished.has(from) ? [...unfit, ...withDependents(graph, from)] : unfit);
}

/** Also repeats the nodes with `if: always` that had run, or begun, before all their needs were finished, and what depends on them. */
function withAlways(
  graph: Graph,
  finished: ReadonlySet<string>,
  repeat: readonly string[],
): { readonly repeat: readonly string[] } {
  const repeated = new Set(repeat);
  const isOpen = (id: string) => repeated.has(id) || !finished.has(id);
  // Every node comes after its needs.
  for (const { id, isAlways, needs } of graph.nodes.values())
    if (isAlways && needs.some(({ node }) => isOpen(node))) for (const each of withDependents(graph, id)) repeated.add(each);
  return { repeat: [...repeated] };
}

/** The innermost of the unfinished nodes, if there is only one. */
function onlyOne(unfinished: readonly string[]): string {
  const innermost = unfinished.filter((id) => !unfinished.some((other) => other.startsWith(`${id}[`)));
  if (innermost.length === 1) return innermost[0]!;
  throw notResumable(innermost.length === 0 ? "no node is unfinished" : `several nodes are unfinished: name one with from`);
}

/** The output of a node that counts as done. Throws `run_not_resumable` if it must name a case. */
export function doneNode(definition: Definition, nodeId: string, output: unknown) {
  const { cases, rules } = nodeAt(definition, nodeId)!.node;
  if (!cases) return { nodeId, output };
  const { decision, case: named } = (typeof output === "object" && output !== null ? output : {}) as Record<string, unknown>;
  const taken = rules.gate ? decision : named;
  if (typeof taken === "string" && cases.has(taken)) return { nodeId, output, case: taken };
  throw notResumable(`the output of ${nodeId} must name its case: ${[...cases].join(", ")}`);
}
