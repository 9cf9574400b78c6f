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

/** What nodes and edges know of what they stand in. */
export interface GraphView {
  readonly states: GraphState;
  /** The id of a node of the definition. */
  readonly selected: string | undefined;
  /** Undefined where nothing can be chosen. */
  readonly select: ((id: string) => void) | undefined;
}

const [useGraphView, provideGraphView] = createContext<() => GraphView>();
export { provideGraphView, useGraphView };
