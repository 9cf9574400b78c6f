import type { CallResult } from "@portico/core/client";
import { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { createContext } from "svelte";
import type { Loaded } from "./loaded.svelte.ts";
import type { WorkflowService } from "./workflow-service.svelte.ts";

type Run = CallResult<typeof workflowServiceContract.run>;

/** A run of a workflow that waits for a person. */
export interface WaitingGate {
  readonly workflowName: string;
  readonly run: Run;
  /** The gate of the run that has waited longest. */
  readonly gate: NonNullable<Run["humanGate"]>;
}

export interface WaitingGates {
  /** The oldest first. */
  readonly gates: readonly WaitingGate[];
  /** There are more. */
  readonly isPart: boolean;
}

const NONE: WaitingGates = { gates: [], isPart: false };
const WAITING = "waiting_human";
/** Each gate costs a call. */
const MOST_GATES = 50;
/** A page of a search may have fewer runs than it could, or none. */
const MOST_PAGES = 5;

/** The gates that wait, if the user has opened the workflow service, or it opens with the sign-in. */
export async function loadWaitingGates(workflow: WorkflowService, signal: AbortSignal): Promise<WaitingGates> {
  if (workflow.state !== "open" && !(workflow.isIncluded && (await workflow.open()))) return NONE;
  const calls = workflow.client(workflowServiceContract);
  const found: { readonly id: string; readonly runId: string }[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES && found.length < MOST_GATES; page++) {
    const query = { status: WAITING, limit: String(MOST_GATES), ...(cursor !== undefined && { cursor }) } as const;
    const { runs, next } = await calls.searchRuns({ query, signal });
    found.push(...runs.map(({ workflowId: id, runId }) => ({ id, runId })));
    cursor = next;
    if (next === undefined) break;
  }
  if (found.length === 0) return { gates: [], isPart: cursor !== undefined };
  const { workflows } = await calls.workflows({ signal });
  const names = new Map(workflows.map(({ id, name }) => [id, name]));
  const read = found.slice(0, MOST_GATES).map(async ({ id, runId }): Promise<WaitingGate[]> => {
    const run = await calls.run({ params: { id, runId }, signal });
    // It may have been decided meanwhile.
    return run.humanGate ? [{ workflowName: names.get(id) ?? id, run, gate: run.humanGate }] : [];
  });
  const gates = (await Promise.all(read)).flat();
  return {
    gates: gates.toSorted((a, b) => a.gate.requestedAt.localeCompare(b.gate.requestedAt)),
    isPart: found.length > MOST_GATES || cursor !== undefined,
  };
}

const [useWaitingGates, provideWaitingGates] = createContext<Loaded<WaitingGates>>();
/** Loaded once for the whole console, which shows them in several places. */
export { provideWaitingGates, useWaitingGates };
