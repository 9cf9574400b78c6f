import * as v from "valibot";

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
