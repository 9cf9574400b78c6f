import * as v from "valibot";
import { Secret } from "../secret.ts";
import type { ConfigMarks } from "./shape.ts";

/** How a configuration may spell a secret. Code may pass a `Secret`. */
export type SecretInput = string | Secret | { readonly env: string } | { readonly file: string };

/**
 * Mark a schema as readable from one environment variable: `v.optional(fromEnv("PROXY_PORT", port), 0)`. Numbers and booleans are
 * read strictly, lists and objects as JSON. Put the default around `fromEnv`, not inside it.
 */
export function fromEnv<const S extends v.GenericSchema<any, any>>(name: string, schema: S) {
  return v.pipe(schema, v.metadata({ env: name } satisfies ConfigMarks));
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
export function secretFromEnv(name: string) {
  return fromEnv(name, secret());
}

/**
 * A path of the file system, read as an absolute path. A path in the configuration file is relative to the folder of that file.
 * Any other path is relative to the working directory.
 */
export function filePath() {
  return v.pipe(v.string(), v.nonEmpty("a path"), v.metadata({ path: true } satisfies ConfigMarks));
}
