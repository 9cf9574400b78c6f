import * as v from "valibot";
import { setOwn } from "../expressions/set-own.ts";

/** Places in a node's output: keys and indexes, with `*` for all of a level. The empty path is the whole output. */
export type SensitivePaths = readonly (readonly string[])[];

const MOST_PATHS = 50;

/** `sensitive` of a node, as a document writes it. */
export const writtenSensitive = v.union(
  [
    v.boolean(),
    v.pipe(
      v.array(
        v.pipe(
          v.string(),
          v.regex(
            /^[^.]{1,200}(?:\.[^.]{1,200}){0,19}$/,
            "A path is keys with dots between them, such as `body.token`; `*` is every key",
          ),
        ),
      ),
      v.minLength(1, "There is at least one path"),
      v.maxLength(MOST_PATHS, `There are at most ${MOST_PATHS} paths`),
    ),
  ],
  "Expected true or a list of paths, such as `body.token`",
);

/** Undefined if nothing is marked. */
export function toSensitivePaths(written: boolean | readonly string[] | undefined): SensitivePaths | undefined {
  if (written === undefined || written === false) return undefined;
  return written === true ? [[]] : written.map((path) => path.split("."));
}

/** The paths in the form of a document. */
export function fromSensitivePaths(paths: SensitivePaths): true | string[] {
  return paths.some((path) => path.length === 0) || paths.map((path) => path.join("."));
}

/** Keys and indexes that lead to a place in a JSON value. An empty list means the whole value. */
export type JsonPath = readonly (string | number)[];

const EVERY = "*";

/** The places of paths in a value. Some may be inside others. */
export function matchingPaths(value: unknown, paths: SensitivePaths): readonly JsonPath[] {
  return paths.flatMap((path) => [...along(value, path, [])]);
}

function* along(value: unknown, [key, ...rest]: readonly string[], before: JsonPath): Generator<JsonPath, void> {
  if (key === undefined) return yield before;
  if (typeof value !== "object" || value === null) return;
  const keys = key === EVERY ? Object.keys(value) : Object.hasOwn(value, key) ? [key] : [];
  for (const each of keys) {
    // A list's own `length` is not one of its elements.
    if (Array.isArray(value) && !/^\d+$/.test(each)) continue;
    yield* along((value as Record<string, unknown>)[each], rest, [...before, Array.isArray(value) ? Number(each) : each]);
  }
}

export function valueAt(value: unknown, path: JsonPath): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown>)[key], value);
}

/** Replaces values at some places. Only the changed parts are copied. If one place is inside another, the outer one is replaced. */
export function withValuesAt(value: unknown, values: readonly (readonly [JsonPath, unknown])[]): unknown {
  if (values.length === 0) return value;
  const own = values.find(([path]) => path.length === 0);
  if (own) return own[1];
  if (typeof value !== "object" || value === null) return value;
  const inner = new Map<string | number, (readonly [JsonPath, unknown])[]>();
  for (const [[key, ...rest], each] of values) {
    const known = inner.get(key!);
    if (known) known.push([rest, each]);
    else inner.set(key!, [[rest, each]]);
  }
  const copy: unknown[] | Record<string, unknown> = Array.isArray(value) ? [...(value as unknown[])] : { ...value };
  for (const [key, changes] of inner) {
    if (!Object.hasOwn(value, key)) continue;
    setOwn(copy as Record<string, unknown>, String(key), withValuesAt((value as Record<string, unknown>)[key], changes));
  }
  return copy;
}

/** Shorter numbers occur too often for other reasons. */
const SHORTEST_NUMBER = 6;

/** The texts of a value, and its longer numbers as they are written. */
export function* textsIn(value: unknown): Generator<string, void> {
  if (typeof value === "string") yield value;
  else if (typeof value === "number" && String(value).length >= SHORTEST_NUMBER) yield String(value);
  else if (typeof value === "object" && value !== null) for (const each of Object.values(value)) yield* textsIn(each);
}

/** The names of a value's objects. */
export function* namesIn(value: unknown): Generator<string, void> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield* Object.keys(value);
  for (const each of Object.values(value)) yield* namesIn(each);
}
