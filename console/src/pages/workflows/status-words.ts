import type { Tone } from "../../blocks/StatusBadge.svelte";
import type { NodeStatus, RunStatus } from "./workflow-calls.ts";

interface Words {
  readonly text: string;
  readonly tone: Tone;
}

export const RUN_WORDS: Readonly<Record<RunStatus, Words>> = {
  running: { text: "Running", tone: "active" },
  waiting_human: { text: "Waiting for a person", tone: "warn" },
  completed: { text: "Completed", tone: "good" },
  failed: { text: "Failed", tone: "bad" },
  cancelled: { text: "Cancelled", tone: "neutral" },
  interrupted: { text: "Interrupted", tone: "bad" },
};

/** The words for a run. A run that waits for earlier runs of its workflow has the status `running`. */
export function runWords({ status, queued }: { readonly status: RunStatus; readonly queued?: true | undefined }): Words {
  return queued ? { text: "Queued", tone: "warn" } : RUN_WORDS[status];
}

export const NODE_WORDS: Readonly<Record<NodeStatus, Words>> = {
  running: { text: "Running", tone: "active" },
  waiting: { text: "Waiting", tone: "warn" },
  completed: { text: "Completed", tone: "good" },
  failed: { text: "Failed", tone: "bad" },
  skipped: { text: "Skipped", tone: "neutral" },
  cancelled: { text: "Cancelled", tone: "neutral" },
};

/** Whether the run has ended. */
export function hasEnded(status: RunStatus): boolean {
  return status !== "running" && status !== "waiting_human";
}

/** Whether the node has ended. */
export function isOver(status: NodeStatus): boolean {
  return status !== "running" && status !== "waiting";
}
