import type { ports } from "@portico/core";
import type { Definition } from "@portico/plugins/workflow-service/definitions";
import type { CasesOfText } from "./case-file.ts";
import { EXECUTED, idWithoutPlaces } from "./scripted-nodes.ts";

type Types = ReadonlyMap<string, ports.NodeRules>;

/** What a case gives to each type of node that waits for an answer from outside. */
const WAITING: Readonly<Record<string, "gates" | "callbacks">> = { human_gate: "gates", callback: "callbacks" };

/** The rules of nodes in cases: a case has its own agents, providers and workflows. */
export function rulesOfCases(types: Types): Types {
  return new Map([...types].map(([type, rules]) => [type, withoutInstance(rules)]));
}

/** The rules without checks that depend on the instance, such as its providers. */
function withoutInstance(rules: ports.NodeRules): ports.NodeRules {
  // Of a waiting node, the checks of its request and its links depend on the instance.
  return EXECUTED.has(rules.type) && WAITING[rules.type] === undefined ? rules : { ...rules, check: () => [] };
}

/** A placeholder for each secret that the cases do not give. */
export function secretsOfCases(names: Iterable<string>, { secrets }: CasesOfText): Readonly<Record<string, string>> {
  return { ...Object.fromEntries([...names].map((name) => [name, `secret ${name}`])), ...secrets };
}

/** A case that answers for a node which the definition does not have, or which is executed, tests something else than it says. */
export function unknownIds({ cases }: CasesOfText, { graph, onFailure }: Definition): readonly string[] {
  const nodes = new Map(typesOf(graph));
  if (onFailure) for (const [id, type] of typesOf({ nodes: new Map([[onFailure.id, onFailure]]) })) nodes.set(id, type);
  return cases.flatMap(({ name, nodes: answers, gates, callbacks, expect }) => {
    const told = (id: string, reason: string) => `case "${name}": ${id}: ${reason}`;
    const all = [...Object.keys(answers), ...Object.keys(gates), ...Object.keys(callbacks), ...Object.keys(expect.nodes)];
    const unknown = all.filter((id) => !nodes.has(idWithoutPlaces(id)));
    const executed = Object.keys(answers).filter((id) => {
      const type = nodes.get(idWithoutPlaces(id));
      // The answer of a waiting node is that of its request.
      return type !== undefined && EXECUTED.has(type) && WAITING[type] === undefined;
    });
    const others = Object.entries(WAITING).flatMap(([type, key]) =>
      Object.keys({ gates, callbacks }[key])
        .filter((id) => nodes.has(idWithoutPlaces(id)) && nodes.get(idWithoutPlaces(id)) !== type)
        .map((id) => told(id, `This node is not a ${type}`)),
    );
    return [
      ...unknown.map((id) => told(id, "The definition has no such node")),
      ...executed.map((id) => told(id, `Nodes of type ${nodes.get(idWithoutPlaces(id))} are executed: they take no answer`)),
      ...others,
    ];
  });
}

function typesOf({ nodes }: Definition["graph"], prefix = ""): ReadonlyMap<string, string> {
  const types = new Map<string, string>();
  for (const { id, rules, with: values } of nodes.values()) {
    types.set(`${prefix}${id}`, rules.type);
    for (const value of Object.values(values)) {
      if (value.kind !== "graph") continue;
      for (const [inner, type] of typesOf(value.graph, `${prefix}${id}.`)) types.set(inner, type);
    }
  }
  return types;
}
