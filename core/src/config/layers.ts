import { dirname, resolve } from "node:path";
import { type ConfigProblem, foundKind, nearestWord } from "./problem.ts";
import { resolveSecret, secretFileOf } from "./secret-reference.ts";
import type { ConfigShape } from "./shape.ts";

/** Sources of settings, weakest first. The schema's own defaults are weaker than all of them. */
export interface ConfigSources {
  /** The configuration file, already read: `path` is absolute, `content` is its parsed content. */
  readonly file?: { readonly path: string; readonly content: unknown } | undefined;
  /** Options given in code, in place of a configuration file. */
  readonly options?: unknown;
  /** An empty variable counts as unset. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly flags?: readonly ConfigFlag[] | undefined;
  /** What relative paths outside the file are relative to; default: the process's working directory. */
  readonly cwd?: string | undefined;
}

/** A secret that is written as `{ "file": "PATH" }`. */
export interface SecretFile {
  /** Path of the key: `agent.tokens.0.token`. */
  readonly key: string;
  /** Absolute path of the file. */
  readonly file: string;
}

/** A command-line flag that sets one key. */
export interface ConfigFlag {
  /** Path of the key: `dataDir`, `proxy.listen.port`. */
  readonly key: string;
  /** As the user wrote it: `--data-dir`. */
  readonly flag: string;
  readonly value: unknown;
}

export interface Layers {
  /** The strongest spelling of every key in any source, as it was written. */
  readonly written: unknown;
  /** The same with secrets looked up, absolute paths, and without unknown keys: ready for the schema. */
  readonly settled: unknown;
  readonly problems: readonly ConfigProblem[];
  readonly secretFiles: readonly SecretFile[];
  /** The source of the value at this path: `default` where no source has it. */
  sourceOf(path: string): string;
}

/**
 * Merge the sources, key by key. Objects are merged. A list, and an object with free keys, replaces the weaker value as a whole.
 */
export function layerSources(shape: ConfigShape, sources: ConfigSources): Layers {
  const cwd = sources.cwd ?? process.cwd();
  const origins = new Map<string, Origin>();
  const problems: ConfigProblem[] = [];
  const secretFiles: SecretFile[] = [];
  const env = sources.env ?? {};
  const { file } = sources;
  const content = file ? file.content : sources.options;
  const first: Origin = file ? { label: `file ${file.path}`, base: dirname(file.path) } : { label: "options", base: cwd };

  const originOf = (path: string): Origin => {
    for (let at = path; ; at = parentPath(at)) {
      const origin = origins.get(at);
      if (origin) return origin;
      if (at === "") return { label: "default", base: cwd };
    }
  };
  const problem = (path: string, expected: string, found: string, hint?: string) => {
    const source = originOf(path).label;
    problems.push({ path, expected, found, source: source === "default" ? undefined : source, hint });
  };

  const layer = (at: ConfigShape, inFile: unknown, path: string, isParentThere: boolean): unknown => {
    let value = inFile;
    if (value !== undefined && content !== undefined) origins.set(path, first);
    const text = at.env === undefined ? undefined : env[at.env];
    if (text !== undefined && text !== "") {
      origins.set(path, { label: `environment ${at.env}`, base: cwd });
      value = fromText(at, text, path, problem);
    }
    const flag = sources.flags?.findLast((each) => each.key === path && each.value !== undefined);
    if (flag) {
      origins.set(path, { label: `flag ${flag.flag}`, base: cwd });
      value = flag.value;
    }
    if (value === undefined && at.isPath && isParentThere && typeof at.default === "string") {
      // The schema would use the default unchanged, without a base folder for its relative path.
      origins.set(path, { label: "default", base: cwd });
      value = at.default;
    }
    if (!at.entries || (value !== undefined && !isPlainObject(value))) return value;
    const merged: Record<string, unknown> = { ...value };
    // A required group is reported by its missing keys.
    const isDue = isParentThere && at.isGroup && at.isRequired;
    const isThere = isDue || (isParentThere && (value !== undefined || at.default !== undefined));
    for (const [key, entry] of at.entries) {
      const child = layer(entry, value && Object.hasOwn(value, key) ? value[key] : undefined, childPath(path, key), isThere);
      if (child !== undefined) merged[key] = child;
    }
    return value === undefined && !isDue && Object.keys(merged).length === 0 ? undefined : merged;
  };

  const settle = (at: ConfigShape, value: unknown, path: string): unknown => {
    if (at.isSecret) {
      const { base } = originOf(path);
      const file = secretFileOf(value, base, env);
      if (file !== undefined) secretFiles.push({ key: path, file });
      return resolveSecret(value, base, env, (expected, found) => problem(path, expected, found));
    }
    if (at.isPath && typeof value === "string" && value !== "") return resolve(originOf(path).base, value);
    if (Array.isArray(value) && !at.isList && (at.entries || at.each)) {
      problem(path, at.expected, foundKind(value));
      return undefined;
    }
    if (Array.isArray(value)) return at.each ? value.map((item, index) => settle(at.each!, item, childPath(path, index))) : value;
    if (!isPlainObject(value)) return value;
    const settled: [string, unknown][] = [];
    for (const [key, item] of Object.entries(value)) {
      const entry = at.entries?.get(key) ?? (at.isList ? undefined : at.each);
      if (entry) settled.push([key, settle(entry, item, childPath(path, key))]);
      else if (at.isStrict) problem(childPath(path, key), "no such key", foundKind(item), keyHint(key, at));
      else settled.push([key, item]);
    }
    return Object.fromEntries(settled);
  };

  const isUsable = content === undefined || isPlainObject(content) || !shape.entries;
  if (!isUsable) problems.push({ path: "", expected: "an object", found: foundKind(content), source: first.label });
  // A configuration file without content counts as an empty configuration, not as a missing one.
  const written = layer(shape, (isUsable ? content : undefined) ?? (shape.entries ? {} : undefined), "", true);
  const settled = settle(shape, written, "");
  return { written, settled, problems, secretFiles, sourceOf: (path) => originOf(path).label };
}

export function childPath(path: string, key: string | number): string {
  return path === "" ? String(key) : `${path}.${key}`;
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The namespace of a module and objects of another realm are objects, too. Instances of classes are values.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

interface Origin {
  readonly label: string;
  /** Base folder of the relative paths of this source. */
  readonly base: string;
}

function parentPath(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}

/**
 * Converts the text of an environment variable to the type of the key. Text that does not fit stays text, for the schema to
 * refuse.
 */
function fromText(
  shape: ConfigShape,
  text: string,
  path: string,
  problem: (path: string, expected: string, found: string) => void,
): unknown {
  if (shape.isSecret) return text;
  if (shape.takes.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if (shape.takes.has("number") && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) return Number(text);
  if (!shape.entries && !shape.each) return text;
  try {
    return JSON.parse(text);
  } catch {
    if (shape.takes.has("string")) return text;
    problem(path, `${shape.expected}, written as JSON`, "text that is not JSON");
    return undefined;
  }
}

/** What was probably meant by an unknown key, or which keys there are. */
export function keyHint(key: string, shape: ConfigShape, noun = "keys"): string {
  const known = [...(shape.entries?.keys() ?? [])];
  const nearest = nearestWord(key, known);
  return nearest === undefined ? `known ${noun}: ${known.join(", ") || "none"}` : `did you mean "${nearest}"?`;
}
