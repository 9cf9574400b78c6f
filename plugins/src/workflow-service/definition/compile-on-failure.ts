import type { Names } from "./check-names.ts";
import { compileGraph } from "./compile-graph.ts";
import type { Compiling } from "./compile-value.ts";
import { type GraphNode, ON_FAILURE } from "./definition.ts";

/** Compiles `onFailure`. `after`: the names after all nodes of the definition. */
export function compileOnFailure(
  written: Readonly<Record<string, unknown>>,
  nodes: Readonly<Record<string, unknown>>,
  after: Names,
  by: Compiling,
): GraphNode | undefined {
  const tell = (key: string, message: string): void => by.tell(by.source.keyProblem([ON_FAILURE, key], message));
  if (Object.hasOwn(nodes, ON_FAILURE)) {
    by.tell(by.source.keyProblem(["nodes", ON_FAILURE], `A node cannot be called "${ON_FAILURE}" beside \`onFailure\``));
    return undefined;
  }
  for (const key of ["needs", "onError"]) if (Object.hasOwn(written, key)) tell(key, `\`onFailure\` has no \`${key}\``);
  const { needs: _needs, onError: _onError, ...node } = written;
  if (by.types.get(String(node["type"]))?.gate) tell("type", "`onFailure` cannot wait for a person");
  const around = { ...after, hasFailure: true, depth: 0 };
  return compileGraph({ [ON_FAILURE]: node }, [], around, by).graph.nodes.get(ON_FAILURE);
}
