import type { ports } from "@portico/core";
import {
  type Definition,
  type Graph,
  type GraphNode,
  ON_FAILURE,
  isNeeded,
  nodeAt,
  outermost,
} from "../definition/definition.ts";
import { readChunks, readEntries } from "./ledger.ts";
import { LOOP_EXHAUSTED, type NodeEnded, type ParametersTaken } from "./ledger-entry.ts";
import type { RunRecord } from "./run-record.ts";
import { isTerminal } from "../contracts/run-state.ts";

/** Facts of an ended run that decide what a run which resumes it does. */
export interface ResumableResults {
  /** Ids of the nodes that keep their results. */
  readonly finished: ReadonlySet<string>;
  /** Ids of the nodes that had started and did not finish, in order. The nodes inside a `map` or `loop` come after it. */
  readonly unfinished: readonly string[];
  /** Whether the result of a completed node is not stored in a form that can be used again, because it was too large. */
  readonly isPartial: boolean;
}

/** The parameters of a run, as its history has them. Undefined if they were too large for it. Throws LogUnavailable. */
export async function readParametersTaken(log: ports.EventLog, runId: string): Promise<ParametersTaken | undefined> {
  for await (const { entries } of readChunks(log, runId, { limit: 1 })) {
    const [first] = entries;
    return first?.kind === "parameters" && !first.isLeftOut ? first : undefined;
  }
  return undefined;
}

/** Reads the history of an ended run. Throws LogUnavailable. */
export async function readResumableResults(
  log: ports.EventLog,
  runId: string,
  {
    definition,
    repeat = [],
    signal,
  }: { readonly definition: Definition; readonly repeat?: readonly string[] | undefined; readonly signal: AbortSignal },
): Promise<ResumableResults> {
  const repeated = new Set(repeat);
  const finished = new Set<string>();
  const begun = new Set<string>();
  let isPartial = false;
  for await (const entry of readEntries(log, runId, signal)) {
    // It belongs to the failure, which the resume mends.
    if (outermost(entry.nodeId) === ON_FAILURE && definition.onFailure) continue;
    // Another definition than that of the run may not have the node.
    const found = nodeAt(definition, entry.nodeId);
    if (!found) continue;
    if (entry.kind === "start") begun.add(entry.nodeId);
    if (entry.kind !== "end" || repeated.has(outermost(entry.nodeId))) continue;
    if (isFinished(entry, found)) finished.add(entry.nodeId);
    else if (entry.status === "completed" && !entry.kept) isPartial = true;
    else if (isExhausted(entry)) forgetInside(entry.nodeId);
  }
  // With their results, the loop would end in the same way again.
  function forgetInside(loop: string): void {
    for (const ids of [finished, begun]) for (const id of ids) if (id.startsWith(`${loop}[`)) ids.delete(id);
  }
  return { finished, unfinished: [...begun].filter((id) => !finished.has(id)), isPartial };
}

/** Of a loop that failed by itself, and not by a loop inside of it. */
function isExhausted({ error }: NodeEnded): boolean {
  return error?.code === LOOP_EXHAUSTED && error.nodeId === undefined;
}

function isFinished(
  { status, kept, error }: NodeEnded,
  { graph, node }: { readonly graph: Graph; readonly node: GraphNode },
): boolean {
  if (status === "skipped") return true;
  // The node failed and the run continued.
  if (status === "failed") return node.onError === "continue" && error?.code !== "process_restart";
  if (status !== "completed" || !kept) return false;
  // A rejection that no node needs has failed the run, so the gate is decided again.
  const stop = node.rules.gate?.stop;
  return stop === undefined || kept.case !== stop || isNeeded(graph, node.id, stop);
}

/** Whether another run may resume this run, as it is shown. `newer`: the run that resumes it, if there is one. */
export function isResumable(run: RunRecord, newer: RunRecord | undefined): boolean {
  if (run.resumedBy && !(newer && hasNoResults(newer))) return false;
  return isResumableEnd(run) && run.isComplete === true && !run.parent;
}

/**
 * Whether the status of a run allows to resume it. A cancelled run is only resumed if it resumes another run. It has the results of that run, and
 * the nodes that it finished itself must not be repeated.
 */
export function isResumableEnd({ status, resumes }: RunRecord): boolean {
  return status === "failed" || status === "interrupted" || (status === "cancelled" && resumes !== undefined);
}

/** Whether a run that resumes another ended before it had taken over the results. It executed no node, so the other run is resumed again. */
export function hasNoResults({ status, isComplete }: RunRecord): boolean {
  return isTerminal(status) && !isComplete;
}
