import { isDeepStrictEqual } from "node:util";
import type { ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { expressionsOfNodes } from "../definition/compile-template.ts";
import type { Definition, JsonSchema } from "../definition/definition.ts";
import { secretPaths } from "../definition/secret-paths.ts";
import { chainsOf } from "../expressions/check-names.ts";
import { syntaxTree } from "../expressions/create-expressions.ts";

type Values = Readonly<Record<string, unknown>>;

/** A definition as it is written, and the parameters of a run with it. `parameters` is undefined if they are not known. */
export interface WrittenRun {
  readonly written: unknown;
  readonly parameters: Values | undefined;
}

/** The nodes of a definition, compared with those of another one. Ids of nodes outside of `map` and `loop`. */
export interface ComparedNodes {
  /** Nodes whose results of a run with the other definition are still valid. */
  readonly fitting: ReadonlySet<string>;
  /** All others, in the order of the definition: added and changed nodes, and the nodes that depend on them. */
  readonly unfit: readonly string[];
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Compares the nodes of a definition with those with which a run began. A result fits if it does not depend on anything that has changed: the
 * node itself, a parameter that one of its expressions reads, and the results of the nodes that it needs, directly or through others.
 */
export function compareDefinitions(before: WrittenRun, definition: Definition, after: WrittenRun): ComparedNodes {
  const [old, now] = [nodesOf(before.written), nodesOf(after.written)];
  const { nodes } = definition.graph;
  const touched = readersOf(definition, now, changedParameters(before, after));
  const fitting = new Set<string>();
  const added: string[] = [];
  const changed: string[] = [];
  // Every node comes after its needs.
  for (const { id, needs } of nodes.values()) {
    if (!Object.hasOwn(old, id)) added.push(id);
    else if (touched.has(id) || JSON.stringify(comparable(old[id])) !== JSON.stringify(comparable(now[id]))) changed.push(id);
    else if (needs.every(({ node }) => fitting.has(node))) fitting.add(id);
  }
  const unfit = [...nodes.keys()].filter((id) => !fitting.has(id));
  return { fitting, unfit, added, changed, removed: Object.keys(old).filter((id) => !nodes.has(id)) };
}

function nodesOf(written: unknown): Values {
  const nodes = isRecord(written) ? written["nodes"] : undefined;
  return isRecord(nodes) ? nodes : {};
}

/** Keys of nodes that change no result that a node has: how it is shown, and how it is tried. */
const WITHOUT_EFFECT = new Set(["name", "retry", "timeout", "idempotent"]);

/**
 * The parts of a node that its result depends on, also of the nodes inside it. The order of the node's own keys has no meaning, but that of keys
 * below may have one, such as that of the `cases` of a `branch`.
 */
function comparable(node: unknown): unknown {
  if (!isRecord(node)) return node;
  const parts = Object.entries(node)
    .filter(([key]) => !WITHOUT_EFFECT.has(key))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(parts.map(([key, value]) => [key, key === "with" ? comparableWith(node, value) : value]));
}

/** Types with nodes of their own in `with.nodes`. */
const GROUPS = new Set<unknown>(["map", "loop"]);

function comparableWith({ type }: Values, given: unknown): unknown {
  if (!GROUPS.has(type) || !isRecord(given) || !isRecord(given["nodes"])) return given;
  const inner = Object.entries(given["nodes"])
    .map(([id, node]) => [id, comparable(node)] as const)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return { ...given, nodes: Object.fromEntries(inner) as unknown };
}

/** Names of parameters that have another value, or are secret in one of the definitions only. Undefined: any of them may have changed. */
function changedParameters(before: WrittenRun, after: WrittenRun): ReadonlySet<string> | undefined {
  const [old, now] = [before.parameters, after.parameters];
  if (!old || !now) return undefined;
  const [oldSecrets, secrets] = [secretNames(before, old), secretNames(after, now)];
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  return new Set(
    [...names].filter((name) => !isDeepStrictEqual(old[name], now[name]) || oldSecrets.has(name) !== secrets.has(name)),
  );
}

function secretNames({ written }: WrittenRun, parameters: Values): ReadonlySet<string> {
  const schema = isRecord(written) && isRecord(written["parameters"]) ? (written["parameters"] as JsonSchema) : {};
  const paths = secretPaths(schema, parameters) ?? [];
  return new Set(paths.flatMap((path) => (path.length === 0 ? Object.keys(parameters) : path.slice(0, 1))));
}

/** Ids of the nodes of which an expression reads one of these parameters. */
function readersOf({ graph }: Definition, nodes: Values, names: ReadonlySet<string> | undefined): ReadonlySet<string> {
  if (names?.size === 0) return new Set();
  const types = typesOf(graph);
  const isTouched = (source: string) =>
    chainsOf(syntaxTree(source)).some(
      ({ root, keys: [first] }) => root === "parameters" && (!names || first === undefined || names.has(first.name)),
    );
  const expressions = [...expressionsOfNodes(nodes, [], types)];
  return new Set(expressions.filter(({ source }) => isTouched(source)).map(({ path: [id] }) => String(id)));
}

function typesOf({ nodes }: Definition["graph"]): Map<string, ports.NodeRules> {
  const types = new Map<string, ports.NodeRules>();
  for (const { rules, with: values } of nodes.values()) {
    types.set(rules.type, rules);
    for (const value of Object.values(values))
      if (value.kind === "graph") for (const [type, inner] of typesOf(value.graph)) types.set(type, inner);
  }
  return types;
}
