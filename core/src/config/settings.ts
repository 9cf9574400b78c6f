import type { GenericSchema } from "valibot";
import { childPath, isPlainObject, type Layers } from "./layers.ts";
import { referenceInWords } from "./secret-reference.ts";
import { type ConfigShape, readShape } from "./shape.ts";

/** One effective setting, for people. Secrets are masked. */
export interface ConfigSetting {
  readonly path: string;
  /** `***` for a secret; undefined if no value is set. */
  readonly value: unknown;
  /** `default`, `file PATH`, `environment NAME` or `flag --x`. */
  readonly source: string;
  /** The environment variable that sets this key. */
  readonly env: string | undefined;
  /** Where a secret is looked up: `environment NAME`, `file` or `command`. */
  readonly reference: string | undefined;
}

/** One key that a schema knows, for documents. */
export interface ConfigKey {
  /** `*` stands for each item of a list and each key of free choice: `providers.*.id`. */
  readonly path: string;
  readonly expected: string;
  readonly default: unknown;
  readonly env: string | undefined;
  readonly isSecret: boolean;
  readonly isRequired: boolean;
  readonly description: string | undefined;
}

/** Every setting with its value and its source. `output` is the parsed configuration. */
export function listSettings(shape: ConfigShape, layers: Layers, output: unknown): ConfigSetting[] {
  const settings: ConfigSetting[] = [];
  const walk = (at: ConfigShape, written: unknown, parsed: unknown, path: string) => {
    if (at.entries && !at.isSecret) {
      for (const [key, entry] of at.entries) walk(entry, keyOf(written, key), keyOf(parsed, key), childPath(path, key));
      return;
    }
    const items = at.each && !isScalar(at.each) ? itemsOf(written) : [];
    if (at.each && items.length > 0) {
      for (const [key, item] of items) walk(at.each, item, keyOf(parsed, key), childPath(path, key));
      return;
    }
    const isSet = written !== undefined;
    settings.push({
      path,
      value: at.isSecret ? (isSet || parsed !== undefined ? "***" : undefined) : (parsed ?? written),
      source: isSet ? layers.sourceOf(path) : "default",
      env: at.env,
      reference: at.isSecret ? referenceInWords(written) : undefined,
    });
  };
  walk(shape, layers.written, output, "");
  return settings;
}

/** Every key of a schema, in the order of the schema. */
export function listKeys(schema: GenericSchema<any, any>): ConfigKey[] {
  const keys: ConfigKey[] = [];
  const walk = (at: ConfigShape, path: string) => {
    const isGroup = at.entries !== undefined && !at.isSecret;
    if (path !== "" && (!isGroup || at.env !== undefined)) {
      const { expected, default: fallback, env, isSecret, isRequired, description } = at;
      keys.push({ path, expected, default: fallback, env, isSecret, isRequired, description });
    }
    if (isGroup) for (const [key, entry] of at.entries ?? []) walk(entry, childPath(path, key));
    if (at.each && !isScalar(at.each)) walk(at.each, childPath(path, "*"));
  };
  walk(readShape(schema), "");
  return keys;
}

/** A list of scalars is one setting. In any other list, each item has its own setting. */
function isScalar(shape: ConfigShape): boolean {
  return !shape.entries && !shape.each && !shape.isSecret;
}

function keyOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}

function itemsOf(value: unknown): [string, unknown][] {
  return Array.isArray(value) || isPlainObject(value) ? Object.entries(value) : [];
}
