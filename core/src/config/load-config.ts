import * as v from "valibot";
import { type ConfigSources, keyHint, type Layers, layerSources, type SecretFile } from "./layers.ts";
import { type ConfigProblem, ConfigUnusable, foundKind, foundValue, problemLine } from "./problem.ts";
import { type ConfigSetting, listSettings } from "./settings.ts";
import { type ConfigShape, readShape } from "./shape.ts";

export type { ConfigFlag, ConfigSources, SecretFile } from "./layers.ts";
export { filePath, fromEnv, type SecretInput, secret, secretFromEnv } from "./shape.ts";
export { nearestWord } from "./problem.ts";
export { type ConfigProblem, ConfigUnusable } from "./problem.ts";
export { type ConfigKey, type ConfigSetting, listKeys as listConfigKeys } from "./settings.ts";

/** A configuration that passed its schema. */
export interface LoadedConfig<T> {
  readonly value: T;
  /** Every key with its value, its source and its environment variable; secrets are masked. */
  readonly settings: readonly ConfigSetting[];
  /** The files that secrets were read from. */
  readonly secretFiles: readonly SecretFile[];
}

/**
 * Read a configuration with its schema. Sources, weakest first: the schema's defaults, file, environment variables (`fromEnv`),
 * flags. Throws ConfigUnusable with every problem at once: unknown keys of strict objects, wrong types, missing secrets.
 */
export function loadConfig<const S extends v.GenericSchema<any, any>>(
  schema: S,
  sources: ConfigSources = {},
): LoadedConfig<v.InferOutput<S>> {
  const shape = readShape(schema);
  const layers = layerSources(shape, sources);
  const result = v.safeParse(schema, layers.settled);
  const problems = onePerPath([...layers.problems, ...(result.issues ?? []).map((issue) => problemOf(issue, shape, layers))]);
  if (!result.success || problems.length > 0) throw new ConfigUnusable(problems);
  return { value: result.output, settings: listSettings(shape, layers, result.output), secretFiles: layers.secretFiles };
}

/**
 * Options that code gave to a part, and why its schema refused them, one line each. The lines contain no text of the options, because any text
 * may be a secret.
 */
export function optionProblems(
  schema: v.GenericSchema<any, any>,
  options: unknown,
  issues: readonly v.BaseIssue<unknown>[],
): readonly string[] {
  const root = readShape(schema);
  const problems = issues.map(({ path: at = [], message, input }): ConfigProblem => {
    const keys = at.map((item) => String(item.key));
    const path = keys.length === 0 ? "(options)" : keys.join(".");
    const { shape } = shapeAt(root, keys);
    const parent = shapeAt(root, keys.slice(0, -1)).shape;
    const written = writtenAt(options, keys);
    if (!shape && parent?.entries)
      return { path, expected: "no such option", found: foundKind(written), hint: keyHint(keys.at(-1)!, parent, "options") };
    const expected = message.startsWith("Invalid ") ? (shape?.expected ?? "another value") : message;
    const scalar = typeof input === "number" || typeof input === "boolean" ? String(input) : undefined;
    return { path, expected, found: foundKind(written, scalar) };
  });
  return onePerPath(problems).map(problemLine);
}

/** A key with an early problem, such as a missing secret, fails the schema a second time. */
function onePerPath(problems: readonly ConfigProblem[]): ConfigProblem[] {
  return problems.filter((problem, index) => problems.findIndex((other) => other.path === problem.path) === index);
}

function problemOf(issue: v.BaseIssue<unknown>, root: ConfigShape, layers: Layers): ConfigProblem {
  const keys = (issue.path ?? []).map((item) => String(item.key));
  const path = keys.join(".");
  const { shape, isSecret } = shapeAt(root, keys);
  // valibot's own messages begin like this. Any other message was written by the schema's author, as the expected value.
  const expected = issue.message.startsWith("Invalid ") ? (shape?.expected ?? "no such key") : issue.message;
  const source = layers.sourceOf(path);
  const isMissing = writtenAt(layers.written, keys) === undefined;
  return {
    path,
    expected,
    found: isSecret || !shape ? foundKind(writtenAt(layers.written, keys)) : foundValue(issue.input),
    source: source === "default" ? undefined : source,
    hint: isMissing && shape?.env !== undefined ? `${shape.env} sets it` : undefined,
  };
}

function shapeAt(root: ConfigShape, keys: readonly string[]): { shape: ConfigShape | undefined; isSecret: boolean } {
  let shape: ConfigShape | undefined = root;
  let isSecret = root.isSecret;
  for (const key of keys) {
    shape = shape?.entries?.get(key) ?? shape?.each;
    isSecret ||= shape?.isSecret ?? false;
  }
  return { shape, isSecret };
}

function writtenAt(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? (at as Record<string, unknown>)[key] : undefined),
    value,
  );
}
