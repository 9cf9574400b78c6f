import type { Definition, Graph, GraphNode } from "./definition/definition.ts";
import type { BrokenDefinition } from "./definition/open-catalogue.ts";

/** The public view of a definition: its parameters and its graph. The inputs of nodes are not shown, because they reveal internal details. */
export function definitionPage(definition: Definition, dslPath: string) {
  const { id, name, description, creator, parameters, timeoutMs, graph, search, onFailure } = definition;
  const nodes = [...shownNodes(graph, undefined)];
  const searched = search && { search: { parameters: [...search.parameters], outputs: [...search.outputs] } };
  const failing = onFailure && {
    onFailure: { type: onFailure.rules.type, ...(onFailure.name !== undefined && { name: onFailure.name }) },
  };
  const nodeCount = graph.nodes.size;
  return { id, name, description, creator, nodeCount, dslPath, parameters, timeoutMs, ...searched, nodes, ...failing };
}

/** Maximum problems of a broken definition in lists. `portico workflow check` shows all. */
const PROBLEMS_SHOWN = 3;

/** The public view of a definition that cannot be used. */
export function brokenPage({ name, problems }: BrokenDefinition) {
  const shown = problems.slice(0, PROBLEMS_SHOWN).map(({ line, column, message }) => ({ line, column, message }));
  return { dslPath: name, problemCount: problems.length, problems: shown };
}

interface ShownNode {
  readonly id: string;
  readonly parent?: string | undefined;
  readonly type: string;
  readonly name?: string | undefined;
  readonly needs: { readonly node: string; readonly case?: string | undefined }[];
  readonly cases?: string[] | undefined;
  readonly conditional: boolean;
  readonly always?: true | undefined;
  readonly onError: "fail" | "continue";
}

/** The nodes of a graph. Each node comes before the nodes inside it. */
function* shownNodes({ nodes }: Graph, parent: string | undefined): Generator<ShownNode, void> {
  const idOf = (id: string) => (parent === undefined ? id : `${parent}.${id}`);
  for (const node of nodes.values()) {
    const { rules, name, needs, cases, condition, isAlways, onError } = node;
    yield {
      id: idOf(node.id),
      parent,
      type: rules.type,
      name,
      needs: needs.map((need) => ({ node: idOf(need.node), case: need.case })),
      cases: cases && [...cases],
      conditional: condition !== undefined,
      ...(isAlways && { always: isAlways }),
      onError,
    };
    for (const inner of graphsOf(node)) yield* shownNodes(inner, idOf(node.id));
  }
}

function graphsOf(node: GraphNode): readonly Graph[] {
  return Object.values(node.with).flatMap((value) => (value.kind === "graph" ? [value.graph] : []));
}
