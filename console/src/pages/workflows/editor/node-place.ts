import { type Document, isMap, isScalar, LineCounter, type Pair, parseDocument, type YAMLMap } from "yaml";

/** Where a node of the graph is written: `each.double` is in a value of `with` of the node `each`. Undefined if it is not found. */
export function nodePlace(text: string, nodeId: string): { readonly line: number; readonly column: number } | undefined {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, logLevel: "silent" });
  const start = rangeOf(document, nodeId.split("."))?.[0];
  if (start === undefined) return undefined;
  const { line, col } = lines.linePos(start);
  return { line, column: col };
}

function rangeOf({ contents }: Document, ids: readonly string[]) {
  let graphs = [valueAt(contents, "nodes")];
  for (const [at, id] of ids.entries()) {
    const pair = graphs.map((graph) => pairAt(graph, id)).find((each) => each !== undefined);
    if (at === ids.length - 1) return isScalar(pair?.key) ? pair.key.range : undefined;
    const values = valueAt(pair?.value, "with");
    graphs = isMap(values) ? (values as YAMLMap).items.map(({ value }) => value) : [];
  }
  return undefined;
}

function valueAt(map: unknown, key: string): unknown {
  return pairAt(map, key)?.value;
}

function pairAt(map: unknown, key: string): Pair | undefined {
  return isMap(map) ? map.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key) : undefined;
}
