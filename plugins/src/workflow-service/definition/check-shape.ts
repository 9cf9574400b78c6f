import * as v from "valibot";
import { unknown } from "./check-names.ts";
import type { Path } from "./definition-problem.ts";

export interface ShapeProblem {
  readonly path: Path;
  readonly message: string;
  /** What is wrong is the key, or that there is none. */
  readonly kind: "unknown-key" | "missing-key" | "value";
}

/** More than these in one object are told when the first ones are gone. */
const UNKNOWN_KEYS_TOLD = 50;

/** Everything in which a value breaks a schema, in words that hold no value. Never throws. */
export function checkShape(schema: v.GenericSchema, value: unknown): ShapeProblem[] {
  const { type, options, pipe } = schema as AnySchema;
  // Of several shapes the one that was probably meant is held against it.
  if (type === "union" && !pipe && options) return fewest(options.map((option) => checkShape(option as v.GenericSchema, value)));
  const problems: ShapeProblem[] = listsForObjects(schema as AnySchema, value, []).map((path) => ({
    path,
    kind: "value",
    message: "Expected an object, found a list",
  }));
  const lists = problems.map(({ path }) => path);
  const isNew = ({ path }: ShapeProblem) => !lists.some((list) => list.every((key, index) => path[index] === key));
  let rest = value;
  // A strict object tells of its first unknown key only: without it, it tells of the next.
  for (let round = 0; round <= UNKNOWN_KEYS_TOLD; round++) {
    const { issues = [] } = v.safeParse(schema, rest);
    const unknownKeys = issues.filter(isUnknownKey).map(pathOf);
    if (unknownKeys.length === 0 || round === UNKNOWN_KEYS_TOLD) {
      return [...problems, ...issues.map((issue) => toProblem(issue)).filter(isNew)];
    }
    for (const path of unknownKeys) {
      const key = String(path.at(-1));
      const known = knownKeys(schema, path.slice(0, -1), rest);
      problems.push({ path, kind: "unknown-key", message: unknown("key", key, known) });
      rest = without(rest, path);
    }
  }
  return problems;
}

function fewest(all: readonly ShapeProblem[][]): ShapeProblem[] {
  return all.reduce((best, each) => (each.length < best.length ? each : best), all[0] ?? []);
}

const OBJECTS = new Set(["object", "strict_object", "loose_object", "object_with_rest", "record"]);

/** Where a list stands for an object: the library takes it for one. */
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
  // Words of a schema's own say more than what was expected.
  const own = issue.message.startsWith("Invalid ") ? undefined : issue.message;
  return { path, kind: "value", message: own ?? `Expected ${expected(issue)}, found ${found(issue.input)}` };
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

function found(input: unknown): string {
  if (input === null) return "nothing";
  if (Array.isArray(input)) return "a list";
  return KINDS[typeof input === "object" ? "Object" : typeof input] ?? "something else";
}

function without(value: unknown, path: Path): unknown {
  const [key, ...rest] = path;
  if (key === undefined || typeof value !== "object" || value === null) return value;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>;
  if (rest.length === 0) delete copy[key];
  else copy[key] = without(copy[key], rest);
  return copy;
}

/** A schema from the outside, whatever it is. */
interface AnySchema {
  readonly type?: string;
  readonly entries?: Readonly<Record<string, AnySchema>>;
  readonly item?: AnySchema;
  readonly value?: AnySchema;
  readonly wrapped?: AnySchema;
  readonly options?: readonly unknown[];
  readonly pipe?: readonly AnySchema[];
}

/** Keys that the object at a path may have, as far as a schema says. */
function knownKeys(schema: v.GenericSchema, path: Path, value: unknown): string[] {
  let candidates: AnySchema[] = [schema as AnySchema];
  for (const key of path) candidates = candidates.flatMap(unwrapped).flatMap((each) => below(each, key));
  const objects = candidates.flatMap(unwrapped).filter(({ entries }) => entries !== undefined);
  const at = path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
  const used = new Set(typeof at === "object" && at !== null ? Object.keys(at) : []);
  return [...new Set(objects.flatMap(({ entries = {} }) => Object.keys(entries)))].filter((key) => !used.has(key));
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
