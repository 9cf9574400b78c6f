import { nodePath } from "./node-path.ts";
import type { DefinitionNode, NodeResult } from "./workflow-calls.ts";

/** A node of a run in the timeline, with the nodes inside it. */
export interface TimelineNode {
  /** The path, as in the history: `each[3].read`. */
  readonly key: string;
  /** `read`. */
  readonly id: string;
  readonly name: string | undefined;
  readonly type: string;
  /** Undefined if the node has not started. */
  readonly result: NodeResult | undefined;
  /** The elements of a `map` or `loop`. */
  readonly elements: readonly TimelineElement[];
}

export interface TimelineElement {
  /** `each[3]`. */
  readonly key: string;
  readonly index: number;
  readonly nodes: readonly TimelineNode[];
}

/** The time range of a timeline's bars. */
export interface Span {
  /** Milliseconds since 1970: the start of the run, and its end or the current time. */
  readonly from: number;
  readonly to: number;
}

interface Growing {
  readonly key: string;
  readonly id: string;
  readonly elements: Map<number, Map<string, Growing>>;
}

/** The nodes of a run in the order of the definition, with elements inside their node. Nodes that the definition no longer has come last. */
export function timeline(
  definition: readonly DefinitionNode[],
  results: Readonly<Record<string, NodeResult>>,
): readonly TimelineNode[] {
  const order = new Map(definition.map(({ id }, index) => [id, index]));
  const shown = new Map(definition.map((node) => [node.id, node]));
  const top = new Map<string, Growing>();
  const enter = (nodes: Map<string, Growing>, key: string, id: string) => {
    const known = nodes.get(id) ?? { key, id, elements: new Map<number, Map<string, Growing>>() };
    nodes.set(id, known);
    return known;
  };
  for (const { id, parent } of definition) if (parent === undefined) enter(top, id, id);
  for (const key of Object.keys(results)) {
    let nodes = top;
    let at = "";
    for (const { id, index } of nodePath(key)) {
      at = at === "" ? id : `${at}.${id}`;
      const node = enter(nodes, at, id);
      if (index === undefined) break;
      at = `${at}[${index}]`;
      nodes = node.elements.get(index) ?? new Map<string, Growing>();
      node.elements.set(index, nodes);
    }
  }

  const finished = (nodes: Map<string, Growing>, within: string): TimelineNode[] =>
    [...nodes.values()]
      .map((node) => ({ node, definitionId: `${within}${node.id}` }))
      .sort((a, b) => placeOf(a.definitionId) - placeOf(b.definitionId))
      .map(({ node: { key, id, elements }, definitionId }) => {
        const result = results[key];
        const defined = shown.get(definitionId);
        return {
          ...{ key, id, result, name: result?.name ?? defined?.name, type: result?.type || (defined?.type ?? "") },
          elements: [...elements]
            .sort(([a], [b]) => a - b)
            .map(([index, inner]) => ({ key: `${key}[${index}]`, index, nodes: finished(inner, `${definitionId}.`) })),
        };
      });
  const placeOf = (id: string) => order.get(id) ?? Number.MAX_SAFE_INTEGER;
  return finished(top, "");
}
