import { createContext } from "svelte";
import type { NodeStatus } from "../workflow-calls.ts";

/** What has become of a node in a run: of all its elements, where it is within a `map` or `loop`. */
export interface NodeState {
  readonly status: NodeStatus;
  /** Within a `map` or `loop`: how many of its elements are over, and how many there are. */
  readonly elements?: { readonly over: number; readonly all: number };
  /** The way that a branch or a gate took. */
  readonly case?: string;
}

/** Read by each node and edge for itself, so that an event lights up one of them and leaves the others alone. */
export interface GraphState {
  /** Undefined of what has not begun, and where no run is shown. */
  readonly of: (id: string) => NodeState | undefined;
  readonly isRun: boolean;
}

const [useGraphState, provideGraphState] = createContext<() => GraphState>();
export { provideGraphState, useGraphState };
