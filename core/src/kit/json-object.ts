import * as v from "valibot";
import type { Schema } from "../grammar/contract.ts";

/** Whether a value of JSON is an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Valibot takes an array as an object: `["a"]` is then a record with the key `0`, and `[]` is an object without properties. The returned schema
 * refuses arrays, and is otherwise the given one. Objects with a required property need no such care.
 */
export function objectOnly<const S extends Schema>(schema: S): S {
  const run: S["~run"] = (dataset, config) => {
    if (!Array.isArray(dataset.value)) return schema["~run"](dataset, config);
    v._addIssue({ ...schema, kind: "schema", expects: "Object" }, "type", dataset, config);
    return dataset as ReturnType<S["~run"]>;
  };
  return v._standardSchema({ ...schema, "~run": run });
}

/**
 * An object whose keys and values match schemas: `v.record` for input from outside. It refuses arrays. It also refuses the keys that `v.record`
 * drops without an error: `__proto__`, `constructor` and `prototype`.
 */
export function record<const K extends v.GenericSchema<string, string>, const V extends Schema>(
  key: K,
  value: V,
): v.RecordSchema<K, V, undefined> {
  const schema = v.record(key, value);
  const run: (typeof schema)["~run"] = (dataset, config) => {
    const input = dataset.value;
    const dropped = DROPPED.find((name) => typeof input === "object" && input !== null && Object.hasOwn(input, name));
    if (dropped === undefined) return schema["~run"](dataset, config);
    const expected = `a name other than "${dropped}"`;
    v._addIssue(schema, "key", dataset as never, config, { expected, received: `"${dropped}"` });
    return dataset as never;
  };
  return objectOnly(v._standardSchema({ ...schema, "~run": run }));
}

const DROPPED = ["__proto__", "constructor", "prototype"];

const anyRecord = v.record(v.string(), v.unknown());

/** Any object of JSON. It is not copied, and any key is an ordinary key. */
export const jsonObject: typeof anyRecord = objectOnly(
  v._standardSchema({
    ...anyRecord,
    "~run"(dataset, config) {
      if (typeof dataset.value === "object" && dataset.value !== null) return Object.assign(dataset, { typed: true }) as never;
      return anyRecord["~run"](dataset, config);
    },
  }),
);

/**
 * The `query` of a read. A request with a parameter that is not among these is refused as `invalid_request`: a caller would take
 * it for a filter that has an effect. Without entries, the read has no parameters.
 */
export function readParameters<const E extends v.ObjectEntries>(entries: E): v.StrictObjectSchema<E, undefined> {
  return v.strictObject(entries);
}
