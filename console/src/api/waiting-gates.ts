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
/** Each workflow and each gate costs a call. */
const MOST_WORKFLOWS = 100;
const MOST_GATES = 50;

/** The gates that wait, if the user has opened the workflow service, or it opens with the sign-in. */
export async function loadWaitingGates(workflow: WorkflowService, signal: AbortSignal): Promise<WaitingGates> {
  if (workflow.state !== "open" && !(workflow.isIncluded && (await workflow.open()))) return NONE;
  const calls = workflow.client(workflowServiceContract);
  const { workflows } = await calls.workflows({ signal });
  const ran = workflows.filter(({ lastRun }) => lastRun !== undefined);
  const found: { readonly id: string; readonly name: string; readonly runId: string }[] = [];
  for (const { id, name } of ran.slice(0, MOST_WORKFLOWS)) {
    const { runs } = await calls.runs({ params: { id }, signal });
    for (const { runId, status } of runs) if (status === "waiting_human") found.push({ id, name, runId });
  }
  const read = found.slice(0, MOST_GATES).map(async ({ id, name, runId }): Promise<WaitingGate[]> => {
    const run = await calls.run({ params: { id, runId }, signal });
    // It may have been decided meanwhile.
    return run.humanGate ? [{ workflowName: name, run, gate: run.humanGate }] : [];
  });
  const gates = (await Promise.all(read)).flat();
  return {
    gates: gates.toSorted((a, b) => a.gate.requestedAt.localeCompare(b.gate.requestedAt)),
    isPart: found.length > MOST_GATES || ran.length > MOST_WORKFLOWS,
  };
}

const [useWaitingGates, provideWaitingGates] = createContext<Loaded<WaitingGates>>();
/** Loaded once for the whole console, which shows them in several places. */
export { provideWaitingGates, useWaitingGates };
