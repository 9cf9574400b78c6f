import { Duration, UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { fieldsOf } from "../cel-value.ts";
import { Refused } from "../refused.ts";

/** A text that is equal for values that CEL's `==` calls equal: `1` and `1.0`, objects with their keys in any order. */
export function valueKey(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
    case "bigint":
      return String(value);
    case "boolean":
      return String(value);
    case "object":
      return value === null ? "null" : keyOfObject(value);
    default:
      throw new Refused("this value cannot be compared");
  }
}

function keyOfObject(value: object): string {
  if (Array.isArray(value)) return `[${value.map(valueKey).join(",")}]`;
  if (value instanceof Date) return `t${value.getTime()}`;
  if (value instanceof Duration) return `d${value.valueOf()}`;
  if (value instanceof UnsignedInt) return String(value.valueOf());
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString("base64")}`;
  const entries = fieldsOf(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${valueKey(each)}`).join(",")}}`;
}
