import * as v from "valibot";
import type { GenericSchema } from "valibot";
import { Secret } from "./secret.ts";

/**
 * The schema's facts about one key. They are read once from the schema itself, so that files, environment, reports, listings and
 * documents never disagree with it. Works with any valibot schema, also of third-party plugins and presets.
 */
export interface ConfigShape {
  /** Description for people: `a whole number from 0 to 65535`. */
  readonly expected: string;
  /** Keys of an object; undefined for any other type. */
  readonly entries: ReadonlyMap<string, ConfigShape> | undefined;
  /** True for a single object type, false for a union of several. */
  readonly isGroup: boolean;
  /** Whether unknown keys are refused. */
  readonly isStrict: boolean;
  /** Shape of each item of a list or each value of a record. */
  readonly each: ConfigShape | undefined;
  readonly isList: boolean;
  /** Which of string, number and boolean are accepted. The text of an environment variable is read as one of them. */
  readonly takes: ReadonlySet<"string" | "number" | "boolean">;
  readonly isSecret: boolean;
  readonly isPath: boolean;
  readonly isRequired: boolean;
  readonly env: string | undefined;
  readonly description: string | undefined;
  /** Undefined without a default. */
  readonly default: unknown;
}

/** The marks that `fromEnv`, `secret` and `directory` leave on a schema. */
export interface ConfigMarks {
  readonly env?: string;
  readonly secret?: boolean;
  readonly path?: boolean;
  readonly about?: string;
}

/** Read a schema's shape. A schema of an unknown kind counts as a plain value of any type. */
export function readShape(schema: GenericSchema<any, any>): ConfigShape {
  return shapeOf(schema as unknown as SchemaParts, 0);
}

/** The parts of valibot's schema objects that this file reads. */
interface SchemaParts {
  readonly type: string;
  readonly pipe?: readonly PipeItem[];
  readonly wrapped?: SchemaParts;
  readonly default?: unknown;
  readonly entries?: Readonly<Record<string, SchemaParts>>;
  readonly item?: SchemaParts;
  readonly value?: SchemaParts;
  readonly options?: readonly unknown[];
  readonly literal?: unknown;
  readonly getter?: (input: unknown) => SchemaParts;
}

interface PipeItem extends Partial<SchemaParts> {
  readonly kind: string;
  readonly type: string;
  readonly requirement?: unknown;
  readonly message?: unknown;
  readonly metadata?: ConfigMarks;
  readonly description?: string;
}

/** Deeper than any configuration. Stops at schemas that contain themselves. */
const DEEPEST = 12;

const MAY_BE_ABSENT = new Set(["optional", "exact_optional", "nullish", "undefinedable"]);

const ANY: ConfigShape = {
  expected: "a value",
  entries: undefined,
  isGroup: false,
  isStrict: false,
  each: undefined,
  isList: false,
  takes: new Set(["string"]),
  isSecret: false,
  isPath: false,
  isRequired: true,
  env: undefined,
  description: undefined,
  default: undefined,
};

function shapeOf(schema: SchemaParts, depth: number): ConfigShape {
  if (depth > DEEPEST) return ANY;
  const items = pipeItems(schema);
  const marks: ConfigMarks = Object.assign({}, ...items.map((item) => (item.type === "metadata" ? item.metadata : {})));
  const description = items.findLast((item) => item.type === "description")?.description ?? marks.about;
  const inner = bareShape(schema, items, depth);
  const isSecret = marks.secret ?? inner.isSecret;
  return {
    ...inner,
    isSecret,
    isPath: marks.path ?? inner.isPath,
    env: marks.env ?? inner.env,
    description: description ?? inner.description,
    expected: marks.secret ? 'a string, {"env": "NAME"} or {"file": "PATH"}' : inner.expected,
  };
}

/** A pipe may begin with a pipe: the items of both count. Only checks before a transformation are about the input. */
function pipeItems(schema: SchemaParts): readonly PipeItem[] {
  return (schema.pipe ?? []).flatMap((item, index) => (index === 0 && item.pipe ? pipeItems(item as SchemaParts) : [item]));
}

function bareShape(schema: SchemaParts, items: readonly PipeItem[], depth: number): ConfigShape {
  if (schema.wrapped) return wrappedShape(schema, schema.wrapped, depth);
  switch (schema.type) {
    case "object":
    case "strict_object":
    case "loose_object":
    case "object_with_rest":
      return objectShape(schema, depth);
    case "record":
    case "array": {
      const each = shapeOf((schema.type === "array" ? schema.item : schema.value) as SchemaParts, depth + 1);
      const isList = schema.type === "array";
      const expected = isList ? `a list${each.expected === ANY.expected ? "" : `, each ${each.expected}`}` : "an object";
      return { ...ANY, takes: new Set(), each, isList, expected };
    }
    case "union":
    case "variant":
      return unionShape((schema.options ?? []) as readonly SchemaParts[], depth);
    case "lazy":
      return schema.getter ? shapeOf(schema.getter(undefined), depth + 1) : ANY;
    case "number":
      return { ...ANY, takes: new Set(["number"]), expected: numberInWords(items) };
    case "boolean":
      return { ...ANY, takes: new Set(["boolean"]), expected: "true or false" };
    case "string":
      return { ...ANY, expected: stringInWords(items) };
    case "picklist":
    case "enum":
      return choiceShape(schema.options ?? []);
    case "literal":
      return choiceShape([schema.literal]);
    default:
      return ANY;
  }
}

function wrappedShape(schema: SchemaParts, wrapped: SchemaParts, depth: number): ConfigShape {
  const inner = shapeOf(wrapped, depth + 1);
  const fallback: unknown = typeof schema.default === "function" ? schema.default() : schema.default;
  return { ...inner, isRequired: inner.isRequired && !MAY_BE_ABSENT.has(schema.type), default: fallback ?? inner.default };
}

function objectShape(schema: SchemaParts, depth: number): ConfigShape {
  const entries = Object.entries(schema.entries ?? {}).map(([key, entry]) => [key, shapeOf(entry, depth + 1)] as const);
  return {
    ...ANY,
    takes: new Set(),
    entries: new Map(entries),
    isGroup: true,
    isStrict: schema.type === "strict_object",
    expected: "an object",
  };
}

/** The shape of a union. A secret in one choice makes the key a secret: no part of its value is shown. */
function unionShape(options: readonly SchemaParts[], depth: number): ConfigShape {
  const shapes = options.map((option) => shapeOf(option, depth + 1));
  const objects = shapes.filter((shape) => shape.entries);
  const entries = new Map<string, ConfigShape>();
  for (const shape of objects) for (const [key, entry] of shape.entries ?? []) entries.set(key, { ...entry, isRequired: false });
  return {
    ...ANY,
    expected: [...new Set(shapes.map((shape) => shape.expected))].join(" or ") || ANY.expected,
    entries: objects.length > 0 ? entries : undefined,
    isStrict: objects.length > 0 && objects.every((shape) => shape.isStrict),
    each: shapes.find((shape) => shape.each)?.each,
    isList: shapes.some((shape) => shape.isList),
    takes: new Set(shapes.flatMap((shape) => [...shape.takes])),
    isSecret: shapes.some((shape) => shape.isSecret),
    isPath: shapes.some((shape) => shape.isPath),
  };
}

function choiceShape(choices: readonly unknown[]): ConfigShape {
  const takes = choices
    .map((choice) => typeof choice)
    .filter((type) => type === "string" || type === "number" || type === "boolean");
  return { ...ANY, takes: new Set(takes), expected: choices.map((choice) => JSON.stringify(choice)).join(" or ") };
}

function numberInWords(items: readonly PipeItem[]): string {
  const requirement = (type: string) => items.find((item) => item.type === type)?.requirement as number | undefined;
  const kind = items.some((item) => item.type === "integer" || item.type === "safe_integer") ? "a whole number" : "a number";
  const least = requirement("min_value");
  const most = requirement("max_value");
  if (least !== undefined && most !== undefined) return `${kind} from ${least} to ${most}`;
  if (least !== undefined) return `${kind} of at least ${least}`;
  return most === undefined ? kind : `${kind} of at most ${most}`;
}

/** A check with its own message gives that message as the expected value. */
function stringInWords(items: readonly PipeItem[]): string {
  const own = items.find((item) => item.kind === "validation" && typeof item.message === "string");
  if (own) return own.message as string;
  return items.some((item) => item.type === "non_empty" || item.type === "min_length")
    ? "a string that is not empty"
    : "a string";
}

/** How a configuration may spell a secret. Code may pass a `Secret`. */
export type SecretInput = string | Secret | { readonly env: string } | { readonly file: string };

/**
 * Mark a schema as readable from one environment variable: `v.optional(fromEnv("PROXY_PORT", port, "Where it listens."), 0)`. Numbers and
 * booleans are read strictly, lists and objects as JSON. Put the default around `fromEnv`, not inside it. `about` describes the key for
 * people, as `v.description` does.
 */
export function fromEnv<const S extends v.GenericSchema<any, any>>(name: string, schema: S, about?: string) {
  return v.pipe(schema, v.metadata({ env: name, ...(about !== undefined && { about }) } satisfies ConfigMarks));
}

/**
 * A secret: spelled as a string, `{ "env": "NAME" }` or `{ "file": "PATH" }`, read as a `Secret`. `loadConfig` looks the
 * reference up; a path may begin with `$CREDENTIALS_DIRECTORY/`. A schema alone accepts only strings and `Secret`s. The value is
 * never printed, not even when it is invalid.
 */
export function secret() {
  return v.pipe(
    v.custom<SecretInput>((value) => value instanceof Secret || (typeof value === "string" && value !== "")),
    v.transform((value): Secret => (value instanceof Secret ? value : new Secret(String(value)))),
    v.metadata({ secret: true } satisfies ConfigMarks),
  );
}

/** A secret that can also come from one environment variable. */
export function secretFromEnv(name: string, about?: string) {
  return fromEnv(name, secret(), about);
}

/**
 * A path of the file system, read as an absolute path. A path in the configuration file is relative to the folder of that file.
 * Any other path is relative to the working directory.
 */
export function filePath() {
  return v.pipe(v.string(), v.nonEmpty("a path"), v.metadata({ path: true } satisfies ConfigMarks));
}
