import * as v from "valibot";
import { Secret } from "../secret.ts";
import type { ConfigMarks } from "./shape.ts";

/** How a configuration may spell a secret; code may hand the `Secret` over as it is. */
export type SecretInput = string | Secret | { readonly env: string } | { readonly file: string };

/**
 * Mark a schema as readable from one environment variable: `v.optional(fromEnv("PROXY_PORT", port), 0)`. Numbers and booleans are read
 * strictly, lists and objects as JSON. A default is wrapped around it, not within.
 */
export function fromEnv<const S extends v.GenericSchema<any, any>>(name: string, schema: S) {
  return v.pipe(schema, v.metadata({ env: name } satisfies ConfigMarks));
}

/**
 * A secret: spelled as a string, `{ "env": "NAME" }` or `{ "file": "PATH" }`, read as a `Secret`. `loadConfig` looks the reference up;
 * a schema alone takes strings and `Secret`s only. Its value is never printed, not even when it is wrong.
 */
export function secret() {
  return v.pipe(
    v.custom<SecretInput>((value) => value instanceof Secret || (typeof value === "string" && value !== "")),
    v.transform((value): Secret => (value instanceof Secret ? value : new Secret(String(value)))),
    v.metadata({ secret: true } satisfies ConfigMarks),
  );
}

/** A secret that one environment variable gives, too. */
export function secretFromEnv(name: string) {
  return fromEnv(name, secret());
}

/**
 * A path of the file system, read as an absolute path: one from the configuration file is relative to that file's folder, one from
 * anywhere else to the working directory.
 */
export function filePath() {
  return v.pipe(v.string(), v.nonEmpty("a path"), v.metadata({ path: true } satisfies ConfigMarks));
}
