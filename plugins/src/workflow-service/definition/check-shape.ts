import * as v from "valibot";
import type { ports } from "@portico/core";
import type { SchemaFaultPlace } from "@portico/core/kit";
import { unknown } from "../expressions/check-names.ts";
import type { Path, DefinitionProblem } from "./definition-problem.ts";
import { hasTemplate } from "./compile-template.ts";
import type { Source } from "./read-source.ts";

interface ShapeProblem {
  readonly path: Path;
  readonly message: string;
  /** The problem is the key itself, or a missing key. */
  readonly kind: "unknown-key" | "missing-key" | "value";
}

/** Maximum unknown keys that are reported. Authors see further ones after they have corrected the first. */
const UNKNOWN_KEYS_TOLD = 200;

/** Maximum depth of nested objects with unknown keys that are checked. */
const ROUNDS = 50;

/** All problems of a value against a schema. The messages contain no values. Never throws. */
export function checkShape(schema: v.GenericSchema, value: unknown): ShapeProblem[] {
  const { type, options, pipe } = schema as AnySchema;
  // Of several shapes, the one with the fewest problems was probably meant.
  if (type === "union" && !pipe && options) return fewest(options.map((option) => checkShape(option as v.GenericSchema, value)));
  const problems: ShapeProblem[] = listsForObjects(schema as AnySchema, value, []).map((path) => ({
    path,
    kind: "value",
    message: "Expected an object, found a list",
  }));
  const lists = problems.map(({ path }) => path);
  const isNew = ({ path }: ShapeProblem) => !lists.some((list) => list.every((key, index) => path[index] === key));
  let rest = value;
  // A strict object reports only its first unknown key, and nothing below it. So unknown keys are removed and the rest is checked again.
  for (let round = 0; round <= ROUNDS; round++) {
    const { issues = [] } = v.safeParse(schema, rest);
    const unknownKeys = issues.filter(isUnknownKey).map(pathOf);
    if (unknownKeys.length === 0 || round === ROUNDS) {
      return [
        ...problems,
        ...issues
          .filter((issue) => !isUnknownKey(issue))
          .map((issue) => toProblem(issue))
          .filter(isNew),
      ];
    }
    for (const path of unknownKeys) {
      const around = path.slice(0, -1);
      const known = entriesAt(schema, around);
      const present = keysAt(rest, around);
      const unused = [...known].filter((key) => !present.includes(key));
      const surplus = new Set([String(path.at(-1)), ...present.filter((key) => !known.has(key))]);
      for (const key of surplus) {
        if (problems.length >= UNKNOWN_KEYS_TOLD) break;
        problems.push({ path: [...around, key], kind: "unknown-key", message: unknown("key", key, unused) });
      }
      rest = without(rest, around, surplus);
    }
  }
  return problems;
}

/** Keys whose literal value is a JSON Schema. */
const SCHEMA_KEYS = new Set(["output", "form", "schema"]);

/** Report the problems of a node's `with` as it is written. Values with templates are left out, because their results are unknown. */
export function checkWith(
  rules: ports.NodeRules,
  written: Readonly<Record<string, unknown>>,
  path: Path,
  by: {
    readonly source: Source;
    report(problem: DefinitionProblem): void;
    schemaFault(schema: Readonly<Record<string, unknown>>): SchemaFaultPlace | undefined;
  },
): void {
  const { source, report } = by;
  for (const problem of checkShape(rules.input, written)) {
    if (isOfHole(problem, rules, written)) continue;
    const at = [...path, ...problem.path];
    report(problem.kind === "unknown-key" ? source.keyProblem(at, problem.message) : source.problem(at, problem.message));
  }
  for (const { path: below, message } of faultsOf(rules, written)) report(source.problem([...path, ...below], message));
  for (const [key, value] of Object.entries(written)) {
    if (rules.keys?.[key] !== "verbatim" || !SCHEMA_KEYS.has(key) || typeof value !== "object" || value === null) continue;
    const fault = by.schemaFault(value as Record<string, unknown>);
    if (fault) report(source.problem([...path, key, ...fault.path], fault.message));
  }
}

/** The JSON type of a value in words, without the value. */
export function kindInWords(input: unknown): string {
  if (input === null) return "nothing";
  if (Array.isArray(input)) return "a list";
  return KINDS[typeof input === "object" ? "Object" : typeof input] ?? "something else";
}

function fewest(all: readonly ShapeProblem[][]): ShapeProblem[] {
  return all.reduce((best, each) => (each.length < best.length ? each : best), all[0] ?? []);
}

const OBJECTS = new Set(["object", "strict_object", "loose_object", "object_with_rest", "record"]);

/** Places with a list instead of an object. The library accepts lists as objects. */
function listsForObjects(schema: AnySchema, value: unknown, path: Path): Path[] {
  if (typeof value !== "object" || value === null) return [];
  const [only, ...others] = unwrapped(schema);
  if (!only || others.length > 0) return [];
  if (Array.isArray(value) && OBJECTS.has(only.type ?? "")) return [path];
  return Object.entries(value).flatMap(([key, each]) => {
    const step = Array.isArray(value) ? Number(key) : key;
    return below(only, step).flatMap((inner) => listsForObjects(inner, each, [...path, step]));
  });
}

function isUnknownKey(issue: v.BaseIssue<unknown>): boolean {
  return issue.kind === "schema" && issue.type === "strict_object" && issue.expected === "never";
}

function isMissingKey(issue: v.BaseIssue<unknown>): boolean {
  return issue.path?.at(-1)?.origin === "key" && issue.kind === "schema" && issue.input === undefined;
}

function pathOf(issue: v.BaseIssue<unknown>): Path {
  return (issue.path ?? []).map(({ key }) => (typeof key === "number" ? key : String(key)));
}

function toProblem(issue: v.BaseIssue<unknown>): ShapeProblem {
  const path = pathOf(issue);
  if (isMissingKey(issue)) return { path, kind: "missing-key", message: `The key "${path.at(-1)}" is missing` };
  // The schema's own message is more precise than the expected type.
  const own = issue.message.startsWith("Invalid ") ? undefined : issue.message;
  return { path, kind: "value", message: own ?? `Expected ${expected(issue)}, found ${kindInWords(issue.input)}` };
}

const KINDS: Readonly<Record<string, string>> = {
  Object: "an object",
  Array: "a list",
  string: "a text",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

function expected({ expected: word }: v.BaseIssue<unknown>): string {
  return (word ?? "something else")
    .replaceAll(/[()]/g, "")
    .split(" | ")
    .map((each) => KINDS[each] ?? each)
    .join(" or ");
}

function without(value: unknown, path: Path, surplus: ReadonlySet<string>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const [key, ...rest] = path;
  if (key === undefined) return Object.fromEntries(Object.entries(value).filter(([each]) => !surplus.has(each)));
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>;
  copy[key] = without(copy[key], rest, surplus);
  return copy;
}

/** The members of a schema of any type. */
interface AnySchema {
  readonly type?: string;
  readonly entries?: Readonly<Record<string, AnySchema>>;
  readonly item?: AnySchema;
  readonly value?: AnySchema;
  readonly wrapped?: AnySchema;
  readonly options?: readonly unknown[];
  readonly pipe?: readonly AnySchema[];
}

/** The known keys of the object at a path. */
function entriesAt(schema: v.GenericSchema, path: Path): ReadonlySet<string> {
  let candidates: AnySchema[] = [schema as AnySchema];
  for (const key of path) candidates = candidates.flatMap(unwrapped).flatMap((each) => below(each, key));
  return new Set(candidates.flatMap(unwrapped).flatMap(({ entries = {} }) => Object.keys(entries)));
}

function keysAt(value: unknown, path: Path): string[] {
  const at = path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
  return typeof at === "object" && at !== null ? Object.keys(at) : [];
}

function unwrapped(schema: AnySchema): AnySchema[] {
  if (schema.pipe && schema.pipe[0] !== schema) return schema.pipe.slice(0, 1).flatMap(unwrapped);
  if (schema.wrapped) return unwrapped(schema.wrapped);
  if (schema.type === "union" || schema.type === "variant" || schema.type === "intersect") {
    return (schema.options as readonly AnySchema[]).flatMap(unwrapped);
  }
  return [schema];
}

function below(schema: AnySchema, key: string | number): AnySchema[] {
  if (schema.entries) return Object.hasOwn(schema.entries, key) ? [schema.entries[key]!] : [];
  const inner = schema.item ?? schema.value;
  return inner ? [inner] : [];
}

function isOfHole({ path, kind }: ShapeProblem, rules: ports.NodeRules, written: Readonly<Record<string, unknown>>): boolean {
  if (kind === "unknown-key") return false;
  const law = typeof path[0] === "string" && rules.keys && Object.hasOwn(rules.keys, path[0]) ? rules.keys[path[0]] : undefined;
  if (law === "verbatim") return false;
  const at = path.reduce<unknown>((value, key) => (value as Record<string | number, unknown> | undefined)?.[key], written);
  // An expression replaces the value, so it is not checked here. Graphs and objects of expressions are checked when they are compiled.
  if (law === "expression" && typeof written[path[0]!] === "string") return true;
  return hasTemplate(at);
}

function faultsOf(rules: ports.NodeRules, written: Readonly<Record<string, unknown>>): readonly ports.NodeFault[] {
  try {
    return rules.check?.(written) ?? [];
  } catch {
    // The node type's code cannot handle this invalid value. The schema has already reported the problem.
    return [];
  }
}
