import type { ports } from "@portico/core";
import { childRunId, entriesUntilEnd, type LedgerEntry } from "@portico/plugins/workflow-service/followed-runs";
import type { WorkflowRuntime } from "@portico/plugins/workflow-service/runtime";

/** A gate that waits for a person. */
export interface OpenGate {
  readonly title: string;
  /** The run that opened it. */
  readonly run: { readonly runId: string; readonly workflowId: string };
}

interface Given {
  readonly runtime: WorkflowRuntime;
  readonly clock: ports.Clock;
}

/** How often it is looked whether a `workflow` node has started its run. */
const LOOK_MS = 500;

/**
 * The first gate that a run opens, or a run that it started, at any depth. Undefined when the run has ended without one. `told` gets the entries
 * of the run itself. Throws errors of stores, those of `told`, and the reason of the signal.
 */
export async function gateOf(
  given: Given,
  runId: string,
  signal: AbortSignal,
  told?: (entry: LedgerEntry) => Promise<void>,
): Promise<OpenGate | undefined> {
  const below = new Map<string, AbortController>();
  const over = new AbortController();
  const until = AbortSignal.any([signal, over.signal]);
  let found: OpenGate | undefined;
  let failure: unknown;
  const watch = async (nodeId: string, ended: AbortSignal): Promise<void> => {
    try {
      found ??= await gateBelow(given, { runId, nodeId }, ended);
      if (found) over.abort();
    } catch (error) {
      if (ended.aborted) return;
      failure ??= error;
      over.abort();
    }
  };
  try {
    for await (const entry of entriesUntilEnd(given.runtime, runId, until)) {
      const { kind, nodeId } = entry;
      if (kind === "gate") {
        const workflowId = (await given.runtime.runs.find(runId))?.value.workflowId ?? "";
        return { title: entry.title, run: { runId, workflowId } };
      }
      if (kind === "start" && entry.type === "workflow") {
        const ended = new AbortController();
        below.set(nodeId, ended);
        void watch(nodeId, AbortSignal.any([until, ended.signal]));
      } else if (kind === "end") {
        below.get(nodeId)?.abort();
        below.delete(nodeId);
      }
      await told?.(entry);
    }
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (found) return found;
    throw failure ?? error;
  } finally {
    over.abort();
  }
}

/** The first gate of the runs that a node starts: one for each of its attempts. Its history tells only when the node begins and ends. */
async function gateBelow(
  given: Given,
  { runId, nodeId }: { readonly runId: string; readonly nodeId: string },
  ended: AbortSignal,
): Promise<OpenGate | undefined> {
  for (let attempt = 1; ; attempt++) {
    const child = childRunId(runId, nodeId, attempt);
    while (!(await given.runtime.runs.find(child))) await given.clock.sleep(LOOK_MS, ended);
    const gate = await gateOf(given, child, ended);
    if (gate) return gate;
  }
}
