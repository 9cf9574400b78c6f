import { createHash } from "node:crypto";
import type { ports } from "@portico/core";
import * as v from "valibot";
import { checkShape } from "./check-shape.ts";
import { type Compiling, compileGraph, compileValue, isRecord } from "./compile-graph.ts";
import { createExpressions } from "./create-expressions.ts";
import { DEFAULT_RUN_TIMEOUT_MS, DEFINITION_NODES, PROBLEMS_TOLD } from "./definition-limits.ts";
import type { DefinitionProblem } from "./definition-problem.ts";
import type { Definition } from "./definition.ts";
import { isDefinitionId, writtenDocument } from "./document-schema.ts";
import { jsonSchemaFault } from "./json-schema-fault.ts";
import { readSource, type Source } from "./read-source.ts";

export interface DefinitionText {
  /** Of the file, with its folders: `support/triage.yaml`. A definition without an id of its own is called after it. */
  readonly name: string;
  readonly text: string;
}

export interface LoadingWith {
  /** Every kind of node that there is, by type. */
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  /** Names that `secrets.NAME` may have. */
  readonly secretNames: Iterable<string>;
}

export type LoadedDefinition =
  | { readonly definition: Definition; readonly problems?: undefined }
  | { readonly problems: readonly DefinitionProblem[]; readonly definition?: undefined };

/**
 * Read, check and compile a definition. All problems are told at once, in the order in which they stand in the text. Never throws, and
 * keeps nothing: the same text can be loaded again for a run that began with it.
 */
export function loadDefinition({ name, text }: DefinitionText, { types, secretNames }: LoadingWith): LoadedDefinition {
  const read = readSource(text);
  if ("problems" in read) return { problems: read.problems };
  const problems: DefinitionProblem[] = [];
  let nodes = 0;
  const by: Compiling = {
    source: read.source,
    types,
    secrets: new Set(secretNames),
    expressions: createExpressions(),
    tell: (problem) => void problems.push(problem),
    count: () => ++nodes !== DEFINITION_NODES + 1,
  };
  const definition = compile({ name, text }, by);
  if (definition && problems.length === 0) return { definition };
  return { problems: inOrder(problems).slice(0, PROBLEMS_TOLD) };
}

/** The file's name without folders and extension. */
export function idOfFile(name: string): string {
  return (name.split("/").at(-1) ?? name).replace(/\.[^.]*$/, "");
}

function compile({ name, text }: DefinitionText, by: Compiling): Definition | undefined {
  const { source, tell } = by;
  const { value } = source;
  if (!isRecord(value)) {
    tell(source.problem([], "A definition is an object, with `nodes`"));
    return undefined;
  }
  const wrong = new Set<unknown>();
  for (const { path, message, kind } of checkShape(writtenDocument, value)) {
    wrong.add(path[0]);
    tell(kind === "unknown-key" ? source.keyProblem(path, message) : source.problem(path, message));
  }
  const usable = Object.fromEntries(Object.entries(value).filter(([key]) => !wrong.has(key)));
  const { id: ownId, ...written } = v.parse(v.partial(writtenDocument), usable);
  const id = ownId ?? idOfFile(name);
  if (ownId === undefined && !wrong.has("id") && !isDefinitionId(id)) {
    tell(source.problem([], "The file's name is no id (1-64 letters, digits, `_` and `-`): add the key `id`"));
  }
  checkParameters(written.parameters, source, tell);
  // The document's own objects: parsed ones have lost keys such as `__proto__`.
  const nodes = isRecord(usable["nodes"]) ? usable["nodes"] : undefined;
  const around = { before: new Set<string>(), known: new Set<string>(), isInside: { map: false, loop: false }, depth: 0 };
  const { graph, after } = nodes
    ? compileGraph(nodes, ["nodes"], around, by)
    : { graph: { nodes: new Map() }, after: { ...around, secrets: by.secrets } };
  const outputs = isRecord(usable["outputs"]) ? compileValue(usable["outputs"], ["outputs"], after, by) : undefined;
  return {
    id,
    name: written.name ?? id,
    description: written.description ?? "",
    creator: written.creator ?? "",
    hash: createHash("sha256").update(`${id}\n${text}`).digest("hex"),
    text,
    parameters: (usable["parameters"] as Definition["parameters"] | undefined) ?? { type: "object" },
    timeoutMs: written.settings?.timeout ?? DEFAULT_RUN_TIMEOUT_MS,
    graph,
    ...(outputs && { outputs }),
  };
}

function checkParameters(
  parameters: Readonly<Record<string, unknown>> | undefined,
  source: Source,
  tell: (problem: DefinitionProblem) => void,
): void {
  if (!parameters) return;
  const fault = jsonSchemaFault(parameters);
  if (fault !== undefined) return tell(source.problem(["parameters"], fault));
  const { type } = parameters;
  if (type !== undefined && type !== "object") {
    tell(source.problem(["parameters", "type"], "Parameters are an object: `type` is `object`, or is left out"));
  }
}

function inOrder(problems: readonly DefinitionProblem[]): DefinitionProblem[] {
  const told = new Map(
    problems.map((problem) => [`${problem.line}:${problem.column}:${problem.path}:${problem.message}`, problem]),
  );
  return [...told.values()].sort((one, other) => one.line - other.line || one.column - other.column);
}
