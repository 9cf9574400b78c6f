import type { EventOf } from "@portico/core";
import type { workflowServiceContract } from "@portico/plugins/workflow-service/contract";
import { isOver } from "./status-words.ts";
import type { NodeResult, RunDetail } from "./workflow-calls.ts";

export type RunEvent = EventOf<(typeof workflowServiceContract)["events"]["success"]["events"]>;

/** A followed run: its history, and the events since then. */
export type FollowedRun = Omit<RunDetail, "nodeResults"> & { nodeResults: Record<string, NodeResult> };

/**
 * Applies an event to a run. A node starts once and ends once, and a stream repeats a run from its first event: nodes that are known
 * as ended stay ended. Events have no times: a node's start is `now`, until the history gives the real time.
 */
export function applyEvent(run: FollowedRun, told: RunEvent, now: string): void {
  const nodes = run.nodeResults;
  switch (told.event) {
    case "workflow:node_start": {
      delete run.queued;
      const { nodeId, type, name } = told.data;
      nodes[nodeId] ??= { type, ...(name !== undefined && { name }), status: "running", attempts: 1, startedAt: now };
      return;
    }
    case "workflow:node_complete": {
      const { nodeId, inputs, outputs, durationMs } = told.data;
      end(run, nodeId, { status: "completed", inputs, outputs, durationMs, completedAt: now });
      return;
    }
    case "workflow:node_error": {
      const { nodeId, error } = told.data;
      end(run, nodeId, { status: "failed", error, completedAt: now });
      return;
    }
    case "workflow:human_gate": {
      const { runId: _runId, ...gate } = told.data;
      const node = nodes[gate.nodeId];
      if (node && isOver(node.status)) return;
      if (node) nodes[gate.nodeId] = { ...node, status: "waiting" };
      run.status = "waiting_human";
      // Shows the gate that has waited longest.
      run.humanGate ??= gate;
      return;
    }
    case "workflow:callback": {
      const { nodeId, attempt, expiresAt } = told.data;
      const node = nodes[nodeId];
      if (node && !isOver(node.status)) nodes[nodeId] = { ...node, status: "waiting", attempts: attempt, waitsUntil: expiresAt };
      return;
    }
    case "workflow:gate_notification": {
      const { runId: _runId, nodeId, ...notification } = told.data;
      if (run.humanGate?.nodeId === nodeId) run.humanGate = { ...run.humanGate, notification };
      return;
    }
    case "workflow:error":
      run.error = told.data.error;
      return;
    case "workflow:complete":
      run.status = told.data.status;
      run.finalOutputs = told.data.finalOutputs;
      return;
    case "workflow:started":
  }
}

/** Applies a new reading of the history. It may be older than events that arrived while it was loading. */
export function takeHistory(known: FollowedRun | undefined, read: RunDetail): FollowedRun {
  const nodeResults = { ...read.nodeResults };
  for (const [key, node] of Object.entries(known?.nodeResults ?? {})) {
    const now = nodeResults[key];
    if (!now || (isOver(node.status) && !isOver(now.status))) nodeResults[key] = node;
  }
  const run = { ...read, nodeResults };
  const gate = read.humanGate && nodeResults[read.humanGate.nodeId];
  if (gate && isOver(gate.status)) forgetGate(run);
  return run;
}

function end(run: FollowedRun, nodeId: string, outcome: Omit<NodeResult, "type" | "attempts">): void {
  const node = run.nodeResults[nodeId];
  if (node && isOver(node.status)) return;
  const { waitsUntil: _waitsUntil, ...known } = node ?? { type: "", attempts: 1 };
  run.nodeResults[nodeId] = { ...known, ...outcome };
  if (run.humanGate?.nodeId === nodeId) forgetGate(run);
}

function forgetGate(run: FollowedRun): void {
  delete run.humanGate;
  if (run.status === "waiting_human") run.status = "running";
}
