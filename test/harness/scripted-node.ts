import { type Adapter, defineAdapter, ports } from "@portico/core";
import * as v from "valibot";
import { createGate, type Gate } from "./gate.ts";

const input = v.strictObject({
  /** Its output. */
  say: v.optional(v.unknown()),
  /** The test's gate that it waits at. */
  gate: v.optional(v.string()),
  /** How many attempts fail. */
  fails: v.optional(v.number(), 0),
  /** Whether trying again could help. */
  retryable: v.optional(v.boolean(), true),
});

/** One attempt that was made. */
export interface PlayedAttempt {
  readonly nodeId: string;
  readonly runId: string;
  readonly attempt: number;
  readonly say: unknown;
  /** The reason for which it was stopped; undefined if it was not. */
  stopped?: unknown;
}

/** Nodes of types `scripted` (not to be repeated after a crash), `repeatable` and `noop` that do what definitions of a test say. */
export interface ScriptedNodes {
  readonly adapters: readonly Adapter[];
  /** In the order in which they began. */
  readonly played: readonly PlayedAttempt[];
  gate(name: string): Gate;
}

export function createScriptedNodes(): ScriptedNodes {
  const played: PlayedAttempt[] = [];
  const gates = new Map<string, Gate>();
  const gate = (name: string): Gate => {
    const known = gates.get(name) ?? createGate();
    gates.set(name, known);
    return known;
  };
  const node = (type: string, repeatable: boolean): Adapter =>
    defineAdapter({
      name: `workflow-nodes/${type}`,
      port: ports.workflowNodes,
      needs: {},
      open: (): ports.WorkflowNode<v.InferOutput<typeof input>> => ({
        type,
        input,
        repeatable,
        async run({ input: { say, gate: name, fails, retryable }, step: { runId, nodeId, attempt }, signal }) {
          const entry: PlayedAttempt = { runId, nodeId, attempt, say };
          played.push(entry);
          if (name !== undefined) {
            try {
              await opened(gate(name), signal);
            } catch (reason) {
              entry.stopped = reason;
              throw reason;
            }
          }
          if (attempt <= fails) throw new ports.NodeFailed("scripted", `attempt ${attempt} fails`, { retryable });
          return say ?? null;
        },
      }),
    })(undefined);
  return { adapters: [node("scripted", false), node("repeatable", true)], played, gate };
}

function opened({ opened: open }: Gate, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    void open.then(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
  });
}
