import { Graph, layout } from "@dagrejs/dagre";
import type { DefinitionNode } from "../workflow-calls.ts";

export type Direction = "LR" | "TB";

interface Point {
  readonly x: number;
  readonly y: number;
}

export interface PlacedNode extends Point {
  readonly node: DefinitionNode;
  readonly width: number;
  readonly height: number;
  readonly hasChildren: boolean;
}

export interface PlacedEdge {
  readonly source: string;
  readonly target: string;
  readonly case?: string;
  /** The route around other nodes, from border to border. */
  readonly points: readonly Point[];
  /** The center of the case's label. */
  readonly label?: Point;
}

export interface Layout {
  /** Each node comes before its inner nodes. Positions are relative to the whole drawing. */
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  readonly width: number;
  readonly height: number;
}

interface LaidOutEdge extends Partial<Point> {
  readonly points?: readonly Point[];
  readonly case?: string;
}

const NODE = { width: 212, height: 62 };
/** The padding around inner nodes. The node's own name is above. */
const INSET = { top: 62, side: 18 };
const CHARACTER_WIDTH = 7;
const LABEL = { height: 22, padding: 18 };

/**
 * Computes all positions. A `map` or `loop` is laid out separately, and then counts as one large node of its container: dependencies
 * never cross its border.
 */
export function layOut(nodes: readonly DefinitionNode[], direction: Direction): Layout {
  const within = Map.groupBy(nodes, ({ parent }) => parent);

  const inner = (parent: string | undefined): Layout => {
    const shown = within.get(parent) ?? [];
    const graph = new Graph({ multigraph: true });
    graph.setGraph({
      rankdir: direction,
      nodesep: 26,
      ranksep: direction === "LR" ? 46 : 40,
      edgesep: 14,
      marginx: 0,
      marginy: 0,
    });
    graph.setDefaultEdgeLabel(() => ({}));
    const insides = new Map(shown.map(({ id }) => [id, within.has(id) ? inner(id) : undefined]));
    for (const { id } of shown) {
      const inside = insides.get(id);
      const width = inside ? Math.max(NODE.width, inside.width + 2 * INSET.side) : NODE.width;
      graph.setNode(id, { width, height: inside ? inside.height + INSET.top + INSET.side : NODE.height });
    }
    for (const { id, needs } of shown) {
      for (const { node, case: name } of needs) {
        const label = name === undefined ? {} : { width: name.length * CHARACTER_WIDTH + LABEL.padding, height: LABEL.height };
        graph.setEdge(node, id, { ...label, labelpos: "c", case: name }, `needs ${name ?? ""}`);
      }
    }
    layout(graph);

    const placed = shown.flatMap((node) => {
      const { x, y, width, height } = graph.node(node.id) as Point & { width: number; height: number };
      const corner = { x: x - width / 2, y: y - height / 2 };
      const inside = insides.get(node.id);
      const own = { node, ...corner, width, height, hasChildren: inside !== undefined };
      const by = { x: corner.x + (inside ? (width - inside.width) / 2 : 0), y: corner.y + INSET.top };
      return { own, inside: inside && moved(inside, by) };
    });
    const edges = graph.edges().map((edge): PlacedEdge => {
      const { points = [], x, y, case: name } = graph.edge(edge) as LaidOutEdge;
      const label = name !== undefined && x !== undefined && y !== undefined ? { label: { x, y } } : {};
      return { source: edge.v, target: edge.w, points, ...(name !== undefined && { case: name }), ...label };
    });
    const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
    return {
      nodes: placed.flatMap(({ own, inside }) => [own, ...(inside?.nodes ?? [])]),
      edges: [...edges, ...placed.flatMap(({ inside }) => inside?.edges ?? [])],
      width,
      height,
    };
  };
  return inner(undefined);
}

function moved({ nodes, edges, width, height }: Layout, by: Point): Layout {
  const move = ({ x, y }: Point) => ({ x: x + by.x, y: y + by.y });
  return {
    nodes: nodes.map((node) => ({ ...node, ...move(node) })),
    edges: edges.map((edge) => ({ ...edge, points: edge.points.map(move), ...(edge.label && { label: move(edge.label) }) })),
    width,
    height,
  };
}
