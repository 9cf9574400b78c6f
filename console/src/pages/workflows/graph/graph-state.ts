import { createContext } from "svelte";
import type { NodeStatus } from "../workflow-calls.ts";

/** The state of a node in a run. For a node inside a `map` or `loop`, the state of all elements. */
export interface NodeState {
  readonly status: NodeStatus;
  /** Inside a `map` or `loop`: the number of finished elements, and of all elements. */
  readonly elements?: { readonly over: number; readonly all: number };
  /** The case of a branch, or the decision of a gate. */
  readonly case?: string;
}

/** Each node and edge reads its own state, so that an event updates only one of them. */
export interface GraphState {
  /** Undefined if the node has not started, and if no run is shown. */
  readonly of: (id: string) => NodeState | undefined;
  readonly isRun: boolean;
}

/** The context of nodes and edges. */
export interface GraphView {
  readonly states: GraphState;
  /** The id of a node of the definition. */
  readonly selected: string | undefined;
  /** Undefined if nodes cannot be selected. */
  readonly select: ((id: string) => void) | undefined;
}

const [useGraphView, provideGraphView] = createContext<() => GraphView>();
export { provideGraphView, useGraphView };
