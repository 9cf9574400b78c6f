import type { Definition, Graph, GraphNode } from "./definition/definition.ts";
import type { BrokenDefinition } from "./definition/open-catalogue.ts";

/** What is shown of a definition: its parameters and its graph. What its nodes are given stays in the file, with what that says of the inside. */
export function definitionPage({ id, name, description, creator, parameters, timeoutMs, graph }: Definition, dslPath: string) {
  const nodes = [...shownNodes(graph, undefined)];
  return { id, name, description, creator, nodeCount: graph.nodes.size, dslPath, parameters, timeoutMs, nodes };
}

/** Problems of a broken definition that lists show: `portico workflow check` tells all. */
const PROBLEMS_SHOWN = 3;

/** What is shown of a definition that cannot be used. */
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
  readonly onError: "fail" | "continue";
}

/** The nodes of a graph, each before those within it. */
function* shownNodes({ nodes }: Graph, parent: string | undefined): Generator<ShownNode, void> {
  const idOf = (id: string) => (parent === undefined ? id : `${parent}.${id}`);
  for (const node of nodes.values()) {
    const { rules, name, needs, cases, condition, onError } = node;
    yield {
      id: idOf(node.id),
      parent,
      type: rules.type,
      name,
      needs: needs.map((need) => ({ node: idOf(need.node), case: need.case })),
      cases: cases && [...cases],
      conditional: condition !== undefined,
      onError,
    };
    for (const inner of graphsOf(node)) yield* shownNodes(inner, idOf(node.id));
  }
}

function graphsOf(node: GraphNode): readonly Graph[] {
  return Object.values(node.with).flatMap((value) => (value.kind === "graph" ? [value.graph] : []));
}
