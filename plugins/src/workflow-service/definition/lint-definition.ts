import type { ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { KEYWORDS, NAMED_SCHEMAS, SCHEMA, SCHEMAS } from "@portico/core/kit";
import { chainsOf, unknown } from "../expressions/check-names.ts";
import { syntaxTree } from "../expressions/create-expressions.ts";
import type { DefinitionProblem, Path } from "./definition-problem.ts";
import type { Definition, JsonSchema, Graph, GraphNode, Need } from "./definition.ts";
import { inOrder } from "./load-definition.ts";
import { readSource, type Source } from "./read-source.ts";
import { comparedTypes, type KnownSchemas } from "./compared-types.ts";
import { expressionsOfNodes, expressionsOfTemplate, type WrittenExpression } from "./compile-template.ts";
import { ancestorsOf } from "./order-nodes.ts";

type Types = ReadonlyMap<string, ports.NodeRules>;

/**
 * Probable mistakes in a valid definition: parameters that its schema does not declare, also those of schedules, keywords that JSON Schema
 * does not have or that are not checked, comparisons of different types, and outputs that read nodes which may have no output. Returns up to 200, in the order of the text. Never throws.
 */
export function lintDefinition(definition: Definition, types: Types): readonly DefinitionProblem[] {
  const read = readSource(definition.text);
  if ("problems" in read || !isRecord(read.source.value)) return [];
  const { source } = read;
  const { nodes, outputs, parameters, onFailure } = read.source.value;
  const failing = onFailure === undefined ? {} : { onFailure };
  const ofNodes = [...expressionsOfNodes(nodes, ["nodes"], types), ...expressionsOfNodes(failing, [], types)];
  const ofOutputs = [...expressionsOfTemplate(outputs, ["outputs"])];
  return inOrder([
    ...undeclaredParameters([...ofNodes, ...ofOutputs], definition.parameters, source),
    ...undeclaredOfSchedules(definition, source),
    ...strangeKeywords([...schemasOf(parameters, nodes, types), ...schemasOf(undefined, failing, types, [])], source),
    ...strangeTypes(
      [...ofNodes, ...ofOutputs],
      { parameters: definition.parameters, outputs: outputSchemas(nodes, types) },
      source,
    ),
    ...lackingOutputs(ofOutputs, definition, source),
  ]);
}

/** Keywords with which a schema can describe properties that it does not name. */
const OPENING = [
  ...["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"],
  ...["additionalProperties", "unevaluatedProperties"],
];

function undeclaredParameters(
  expressions: readonly WrittenExpression[],
  schema: JsonSchema,
  source: Source,
): readonly DefinitionProblem[] {
  const properties = declaredProperties(schema);
  if (!properties) return [];
  return expressions.flatMap(({ source: text, path, offset }) =>
    chainsOf(syntaxTree(text)).flatMap(({ root, keys: [first] }) =>
      root === "parameters" && first && !Object.hasOwn(properties, first.name)
        ? [source.textProblem(path, offset + first.offset, unknown("declared parameter", first.name, Object.keys(properties)))]
        : [],
    ),
  );
}

function undeclaredOfSchedules({ schedules, parameters }: Definition, source: Source): readonly DefinitionProblem[] {
  const properties = declaredProperties(parameters);
  if (!properties) return [];
  const known = Object.keys(properties);
  return schedules.flatMap((schedule, at) =>
    Object.keys(schedule.parameters)
      .filter((name) => !Object.hasOwn(properties, name))
      .map((name) => source.keyProblem(["schedules", at, "parameters", name], unknown("declared parameter", name, known))),
  );
}

/** Undefined if a schema may describe properties that it does not name. */
function declaredProperties(schema: JsonSchema): Readonly<Record<string, unknown>> | undefined {
  const { properties } = schema;
  if (!isRecord(properties) || OPENING.some((key) => schema[key] !== undefined && schema[key] !== false)) return undefined;
  return properties;
}

/** Keys of nodes whose literal value is a JSON Schema. */
const SCHEMA_KEYS = ["output", "form", "schema"];

function* schemasOf(parameters: unknown, nodes: unknown, types: Types, path: Path = ["nodes"]): Generator<[unknown, Path], void> {
  if (parameters !== undefined) yield [parameters, ["parameters"]];
  for (const [id, node] of isRecord(nodes) ? Object.entries(nodes) : []) {
    const given = isRecord(node) ? node["with"] : undefined;
    if (!isRecord(node) || !isRecord(given)) continue;
    const { keys = {} } = types.get(String(node["type"])) ?? {};
    for (const key of SCHEMA_KEYS) if (keys[key] === "verbatim") yield [given[key], [...path, id, "with", key]];
    if (keys["nodes"] === "graph") yield* schemasOf(undefined, given["nodes"], types, [...path, id, "with", "nodes"]);
  }
}

function strangeKeywords(schemas: Iterable<[unknown, Path]>, source: Source): readonly DefinitionProblem[] {
  return [...schemas].flatMap(([schema, path]) =>
    [...writtenKeywords(schema, path)].flatMap(({ key, value, path: at }) => {
      // Names with `x-` are extensions, and validators ignore other unknown ones.
      if (!KEYWORDS.has(key) && !key.startsWith("x-"))
        return source.keyProblem(at, unknown("keyword of JSON Schema", key, KEYWORDS));
      return key === "format" && value !== SECRET_FORMAT ? source.keyProblem(at, UNCHECKED_FORMAT) : [];
    }),
  );
}

const SECRET_FORMAT = "password";
const UNCHECKED_FORMAT =
  "`format` only tells readers what is meant, and is not checked: use `pattern`, `enum`, `minLength` or `maxLength`";

/** Outputs of nodes outside of `map` and `loop` that a schema describes. */
function outputSchemas(nodes: unknown, types: Types): KnownSchemas["outputs"] {
  const all = isRecord(nodes) ? Object.entries(nodes) : [];
  return new Map(
    all.flatMap(([id, node]) => {
      const given = isRecord(node) ? node["with"] : undefined;
      const schema = isRecord(given) ? given["output"] : undefined;
      const isSchema = isRecord(node) && types.get(String(node["type"]))?.keys?.["output"] === "verbatim";
      return isSchema && isRecord(schema) ? [[id, schema]] : [];
    }),
  );
}

function strangeTypes(
  expressions: readonly WrittenExpression[],
  schemas: KnownSchemas,
  source: Source,
): readonly DefinitionProblem[] {
  return expressions.flatMap(({ source: text, path, offset }) =>
    comparedTypes(syntaxTree(text), schemas).map((problem) => source.textProblem(path, offset + problem.offset, problem.message)),
  );
}

function lackingOutputs(
  expressions: readonly WrittenExpression[],
  { graph }: Definition,
  source: Source,
): readonly DefinitionProblem[] {
  const lacks = new Map<string, boolean>();
  const mayLack = (id: string): boolean => {
    const answer = lacks.get(id) ?? mayLackOutput(graph, id);
    lacks.set(id, answer);
    return answer;
  };
  return expressions.flatMap(({ source: text, path, offset }) => {
    const reads = chainsOf(syntaxTree(text)).filter(({ root }) => root === "nodes");
    // An expression that checks the status handles a missing output.
    const asked = new Set(reads.flatMap(({ keys: [id, field] }) => (field?.name === "status" ? id!.name : [])));
    return reads.flatMap(({ keys: [id] }) => {
      if (!id || asked.has(id.name) || isAskedFor(id.name, text) || !mayLack(id.name)) return [];
      const message = `The node "${id.name}" has no output if it is skipped or fails: check with has(nodes.${id.name}.output)`;
      return [source.textProblem(path, offset + id.offset, message)];
    });
  });
}

/** Finds `has(nodes.ID…)` anywhere in the expression. Ids contain no special characters of patterns. */
function isAskedFor(id: string, text: string): boolean {
  return new RegExp(`\\bhas\\(\\s*nodes(?:\\.${id}\\b|\\[["']${id}["']\\])`).test(text);
}

/** The end of a node; undefined if it was skipped. */
type Outcome = { readonly case?: string | undefined; readonly isFailed?: boolean } | undefined;

/** Maximum steps of the search. If it would need more, nothing is reported. */
const MOST_STEPS = 20_000;

/** Whether there is a path through the graph on which a node has no output: the node is skipped, or its failure is ignored. */
function mayLackOutput(graph: Graph, id: string): boolean {
  const needs = new Map([...graph.nodes.values()].map((node) => [node.id, node.needs.map(({ node: needed }) => needed)]));
  const before = ancestorsOf(id, needs);
  const nodes = [...graph.nodes.values()].filter((node) => node.id === id || before.has(node.id));
  const neededCases = new Set([...graph.nodes.values()].flatMap((node) => node.needs.map((need) => `${need.node}.${need.case}`)));
  const outcomes = new Map<string, Outcome>();
  let steps = 0;

  /** Each node comes after its needs. */
  const goOn = (index: number): boolean => {
    if (++steps > MOST_STEPS) return false;
    const node = nodes[index];
    if (!node) {
      const outcome = outcomes.get(id);
      return outcome === undefined || outcome.isFailed === true;
    }
    return outcomesOf(node).some((outcome) => {
      outcomes.set(node.id, outcome);
      return goOn(index + 1);
    });
  };
  const outcomesOf = (node: GraphNode): readonly Outcome[] => {
    const isStarted =
      node.isAlways || node.needs.length === 0 || node.needs.some((need) => isMet(need, graph.nodes.get(need.node)!, outcomes));
    if (!isStarted) return [undefined];
    const ends: Outcome[] = node.cases ? [...node.cases].map((each) => ({ case: each })) : [{}];
    const stop = node.rules.gate?.stop;
    // A rejection that no node needs fails the run.
    const failsRun = stop !== undefined && !neededCases.has(`${node.id}.${stop}`);
    const possible = failsRun ? ends.filter((end) => end?.case !== stop) : ends;
    return [...possible, ...(node.onError === "continue" ? [{ isFailed: true }] : []), ...(node.condition ? [undefined] : [])];
  };
  return goOn(0);
}

function isMet({ case: wanted }: Need, needed: GraphNode, outcomes: ReadonlyMap<string, Outcome>): boolean {
  const outcome = outcomes.get(needed.id);
  if (outcome === undefined) return false;
  if (outcome.isFailed) return wanted === undefined;
  const meant = wanted ?? needed.rules.gate?.pass;
  return meant === undefined || meant === outcome.case;
}

interface WrittenKeyword {
  readonly key: string;
  readonly value: unknown;
  readonly path: Path;
}

/** The keywords in a JSON Schema that contain no schemas, also those of the schemas inside it. */
function* writtenKeywords(schema: unknown, path: Path): Generator<WrittenKeyword, void> {
  if (!isRecord(schema)) return;
  for (const [key, value] of Object.entries(schema)) {
    const at = [...path, key];
    if (SCHEMA.has(key)) yield* writtenKeywords(value, at);
    else if (SCHEMAS.has(key)) {
      for (const [index, each] of (Array.isArray(value) ? value : []).entries()) yield* writtenKeywords(each, [...at, index]);
    } else if (NAMED_SCHEMAS.has(key)) {
      for (const [name, each] of isRecord(value) ? Object.entries(value) : []) yield* writtenKeywords(each, [...at, name]);
    } else yield { key, value, path: at };
  }
}
