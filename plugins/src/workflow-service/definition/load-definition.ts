import { createHash } from "node:crypto";
import type { ports } from "@portico/core";
import { boundSchemas, type BoundSchema, compileSchema, SchemaInvalid, type SchemaFaultPlace } from "@portico/core/kit";
import * as v from "valibot";
import { isRecord } from "@portico/core/contract";
import { chainsIn } from "./chains-in.ts";
import { checkSearch } from "./check-search.ts";
import { checkShape } from "./check-shape.ts";
import { compileGraph } from "./compile-graph.ts";
import { type Compiling, compileValue, hasTemplate } from "./compile-template.ts";
import { createExpressions, type Expressions } from "../expressions/create-expressions.ts";
import {
  DEBOUNCE_DELAYS,
  DEFAULT_RUN_TIMEOUT_MS,
  DEFINITION_EXPRESSIONS,
  DEFINITION_NODES,
  EXPRESSIONS_CHARACTERS,
  PROBLEMS_FOUND,
  PROBLEMS_TOLD,
} from "./definition-limits.ts";
import type { DefinitionProblem, Path } from "./definition-problem.ts";
import { type Concurrency, type Debounce, type Definition, type GraphNode, ON_FAILURE, type StartKey } from "./definition.ts";
import { isDefinitionId, type WrittenDocument, writtenDocument } from "./document-schema.ts";
import { readSource, type Source } from "./read-source.ts";
import { compileSchedules } from "./written-schedules.ts";
import type { Chain, Names } from "../expressions/check-names.ts";
import { mayBeSecret } from "./secret-paths.ts";

export interface DefinitionText {
  /** Path of the file: `support/triage.yaml`. A definition without an id is named after its file. */
  readonly name: string;
  readonly text: string;
  /**
   * Whether runs began with this text. Then a service has accepted it. Limits on slow parts are not applied again, because the runs could not
   * continue otherwise.
   */
  readonly isStored?: boolean;
}

export interface LoadingWith {
  /** All kinds of nodes, by type. */
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  /** Names that `secrets.NAME` may have. */
  readonly secretNames: Iterable<string>;
}

export type LoadedDefinition =
  | { readonly definition: Definition; readonly problems?: undefined; readonly id?: undefined }
  | {
      readonly problems: readonly DefinitionProblem[];
      readonly definition?: undefined;
      /** The id that the document gives itself. Absent if it gives none, or is not readable as YAML. */
      readonly id?: string | undefined;
    };

/**
 * Read, check and compile a definition. All problems are reported together, up to 200, in the order of the text. Never throws. Keeps no state,
 * so the same text can be loaded again for a run that began with it.
 */
export function loadDefinition(document: DefinitionText, loading: LoadingWith): LoadedDefinition {
  const read = readSource(document.text, document);
  if ("problems" in read) return { problems: read.problems };
  const { definition, problems, id } = compileSource(document, read.source, loading);
  return definition ? { definition } : { problems: inOrder(problems), id };
}

/** The definition of a document, or all its problems in any order. */
export function compileSource(
  { name, text, isStored }: DefinitionText,
  source: Source,
  { types, secretNames }: LoadingWith,
): LoadedDefinition {
  const problems: DefinitionProblem[] = [];
  const boundSchema = boundSchemas();
  let nodes = 0;
  // Finding every problem of a completely wrong document takes long, and the list would be too long to read.
  const enough = new Error("Enough problems are found");
  const by: Compiling = {
    source,
    types,
    secrets: new Set(secretNames),
    schemaFault: isStored ? () => undefined : (schema) => jsonSchemaFault(schema, boundSchema),
    expressions: isStored
      ? createExpressions()
      : counted(createExpressions(), () => {
          by.report(source.problem([], TOO_MANY_EXPRESSIONS));
          throw enough;
        }),
    report(problem) {
      problems.push(problem);
      if (problems.length === PROBLEMS_FOUND) throw enough;
    },
    count() {
      if (++nodes > DEFINITION_NODES + 1) throw enough;
      return nodes <= DEFINITION_NODES;
    },
  };
  try {
    const definition = compile({ name, text, isStored }, by);
    return definition && problems.length === 0 ? { definition } : { problems, id: ownIdOf(source) };
  } catch (error) {
    if (error !== enough) throw error;
    return { problems, id: ownIdOf(source) };
  }
}

function ownIdOf({ value }: Source): string | undefined {
  return isRecord(value) && typeof value["id"] === "string" ? value["id"] : undefined;
}

const TOO_MANY_EXPRESSIONS = `A definition has at most ${DEFINITION_EXPRESSIONS} expressions, of ${EXPRESSIONS_CHARACTERS} characters together`;

/** The same, up to the most that a definition may have. */
function counted(expressions: Expressions, exceed: () => never): Expressions {
  let count = 0;
  let characters = 0;
  return {
    compile(expression, names) {
      count++;
      characters += expression.length;
      if (count > DEFINITION_EXPRESSIONS || characters > EXPRESSIONS_CHARACTERS) exceed();
      return expressions.compile(expression, names);
    },
  };
}

/** Each problem once, in the order of the text, up to the limit. */
export function inOrder(problems: readonly DefinitionProblem[]): readonly DefinitionProblem[] {
  const unique = new Map(
    problems.map((problem) => [`${problem.line}:${problem.column}:${problem.path}:${problem.message}`, problem]),
  );
  const sorted = [...unique.values()].sort((one, other) => one.line - other.line || one.column - other.column);
  return sorted.slice(0, PROBLEMS_TOLD);
}

/** The file's name without folders and extension. */
export function idOfFile(name: string): string {
  return (name.split("/").at(-1) ?? name).replace(/\.[^.]*$/, "");
}

function compile({ name, text, isStored }: DefinitionText, by: Compiling): Definition | undefined {
  const { source, report } = by;
  const { value } = source;
  if (!isRecord(value)) {
    report(source.problem([], "A definition must be an object with `nodes`"));
    return undefined;
  }
  const wrong = new Set<unknown>();
  for (const { path, message, kind } of checkShape(writtenDocument, value)) {
    wrong.add(path[0]);
    report(kind === "unknown-key" ? source.keyProblem(path, message) : source.problem(path, message));
  }
  // There may be more unknown keys than are reported.
  const isUsable = (key: string) => Object.hasOwn(writtenDocument.entries, key) && !wrong.has(key);
  const usable = Object.fromEntries(Object.entries(value).filter(([key]) => isUsable(key)));
  const { id: ownId, ...written } = v.parse(v.partial(writtenDocument), usable);
  const id = ownId ?? idOfFile(name);
  if (ownId === undefined && !wrong.has("id") && !isDefinitionId(id)) {
    report(source.problem([], "The file's name is not a valid id (1-64 letters, digits, `_` and `-`): add the key `id`"));
  }
  const parameters = (usable["parameters"] as Definition["parameters"] | undefined) ?? { type: "object" };
  const hasGoodParameters = !wrong.has("parameters") && checkParameters(written.parameters, by);
  // A run does not need the schedules of its definition. It continues even if a check would end differently now, such as that of a time zone.
  const schedules = isStored
    ? []
    : compileSchedules(written.schedules ?? [], (usable["schedules"] as unknown[] | undefined) ?? [], {
        schema: hasGoodParameters ? parameters : undefined,
        report: (path, message) => report(source.problem(path, message)),
      });
  // Uses the document's own objects, because parsed objects have lost keys such as `__proto__`.
  const nodes = isRecord(usable["nodes"]) ? usable["nodes"] : undefined;
  const around = { before: new Set<string>(), known: new Set<string>(), isInside: { map: false, loop: false }, depth: 0 };
  const { graph, after } = nodes
    ? compileGraph(nodes, ["nodes"], around, by)
    : { graph: { nodes: new Map() }, after: { ...around, secrets: by.secrets } };
  const failing = isRecord(usable["onFailure"]) ? usable["onFailure"] : undefined;
  const onFailure = failing && compileOnFailure(failing, nodes ?? {}, after, by);
  const outputs = isRecord(usable["outputs"]) ? compileValue(usable["outputs"], ["outputs"], after, by) : undefined;
  const declaring = { parameters: usable["parameters"], outputs: usable["outputs"], graph };
  const keyed = { ...by, parameters: hasGoodParameters ? parameters : undefined };
  const concurrency = written.concurrency && compileConcurrency(written.concurrency, keyed);
  const debounce = written.debounce && compileDebounce(written.debounce, keyed);
  const search = written.search && checkSearch(written.search, declaring, by);
  return {
    id,
    name: written.name ?? id,
    description: written.description ?? "",
    creator: written.creator ?? "",
    ...(written.mcp === true && { isMcpTool: true as const }),
    hash: createHash("sha256").update(`${id}\n${text}`).digest("hex"),
    text,
    parameters,
    timeoutMs: written.settings?.timeout ?? DEFAULT_RUN_TIMEOUT_MS,
    ...{ schedules, graph },
    ...(onFailure && { onFailure }),
    ...(outputs && { outputs }),
    ...(search && { search }),
    ...(concurrency && { concurrency }),
    ...(debounce && { debounce }),
  };
}

/** The names of an expression that is evaluated before the run exists. */
const BEFORE_RUN: Names = {
  before: new Set(),
  known: new Set(),
  isInside: { map: false, loop: false },
  secrets: new Set(),
  isBeforeRun: true,
};

function compileConcurrency(
  { limit, key, overflow = "queue" }: NonNullable<WrittenDocument["concurrency"]>,
  by: CompilingKey,
): Concurrency {
  return { limit, overflow, key: compileStartKey(key, ["concurrency", "key"], by) };
}

function compileDebounce({ delay, key, maxWait }: NonNullable<WrittenDocument["debounce"]>, by: CompilingKey): Debounce {
  const { usual, most } = DEBOUNCE_DELAYS;
  if (maxWait !== undefined && (maxWait < delay || maxWait > most * delay))
    by.report(by.source.problem(["debounce", "maxWait"], `The longest wait is 1 to ${most} delays`));
  return { delayMs: delay, maxWaitMs: maxWait ?? usual * delay, key: compileStartKey(key, ["debounce", "key"], by) };
}

interface CompilingKey extends Compiling {
  /** The schema of the parameters. Undefined if it is invalid. */
  readonly parameters: Definition["parameters"] | undefined;
}

function compileStartKey(key: string | undefined, path: Path, by: CompilingKey): StartKey | undefined {
  if (key === undefined) return undefined;
  const { parameters } = by;
  // Only a digest of the key is stored. The few values that a key may have can be tried.
  const names = ({ keys }: Chain) => keys.map(({ name }) => name);
  const reads = chainsIn(key).filter(({ root }) => root === "parameters");
  if (parameters && reads.some((chain) => mayBeSecret(parameters, names(chain))))
    by.report(by.source.problem(path, "A key cannot read a secret parameter (`writeOnly` or `format: password`)"));
  if (!hasTemplate(key)) by.report(by.source.problem(path, "A key names parameters, such as `${{ parameters.customer }}`"));
  return { ...compileValue(key, path, BEFORE_RUN, by), source: key };
}

/** Returns whether values can be checked against the schema. */
function checkParameters(
  parameters: Readonly<Record<string, unknown>> | undefined,
  { source, report, schemaFault }: Compiling,
): boolean {
  if (!parameters) return true;
  const fault = schemaFault(parameters);
  if (fault) report(source.problem(["parameters", ...fault.path], fault.message));
  const { type } = parameters;
  const isObject = type === undefined || type === "object";
  if (!fault && !isObject)
    report(source.problem(["parameters", "type"], "Parameters must be an object: `type` must be `object` or omitted"));
  return !fault && isObject;
}

/** Compiles `onFailure`. `after`: the names after all nodes of the definition. */
function compileOnFailure(
  written: Readonly<Record<string, unknown>>,
  nodes: Readonly<Record<string, unknown>>,
  after: Names,
  by: Compiling,
): GraphNode | undefined {
  const report = (key: string, message: string): void => by.report(by.source.keyProblem([ON_FAILURE, key], message));
  if (Object.hasOwn(nodes, ON_FAILURE)) {
    by.report(by.source.keyProblem(["nodes", ON_FAILURE], `A node cannot be called "${ON_FAILURE}" beside \`onFailure\``));
    return undefined;
  }
  for (const key of ["needs", "onError"]) if (Object.hasOwn(written, key)) report(key, `\`onFailure\` has no \`${key}\``);
  const { needs: _needs, onError: _onError, ...node } = written;
  if (by.types.get(String(node["type"]))?.gate) report("type", "`onFailure` cannot wait for a person");
  const around = { ...after, hasFailure: true, depth: 0 };
  return compileGraph({ [ON_FAILURE]: node }, [], around, by).graph.nodes.get(ON_FAILURE);
}

/**
 * Why an object is not a usable JSON Schema 2020-12. The sentence quotes only the schema. Undefined for a usable schema. References can
 * only point into the same schema.
 */
function jsonSchemaFault(schema: Readonly<Record<string, unknown>>, boundSchema: BoundSchema): SchemaFaultPlace | undefined {
  // This check comes first, because the other checks may take long.
  const excess = boundSchema(schema);
  if (excess) return excess;
  const { $schema } = schema;
  if ($schema !== undefined && $schema !== "https://json-schema.org/draft/2020-12/schema")
    return { path: [], message: "Schemas must use JSON Schema 2020-12: omit `$schema`, or set it to this version" };
  try {
    compileSchema(schema);
    return undefined;
  } catch (error) {
    if (error instanceof SchemaInvalid) return { path: [], message: error.message };
    return { path: [], message: "This JSON Schema cannot be used" };
  }
}
