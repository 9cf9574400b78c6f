import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Secret } from "./secret.ts";

/**
 * Reads the spelling of a secret. Returns a `Secret`, or the unchanged value if it is not a valid spelling (the schema then
 * refuses it). A reference to a missing secret is reported to `problem`, without the written text: people sometimes put the
 * secret itself there.
 */
export function resolveSecret(
  written: unknown,
  base: string,
  env: Readonly<Record<string, string | undefined>>,
  problem: (expected: string, found: string) => void,
): unknown {
  const reference = readReference(written);
  if (!reference) return written;
  if (reference.kind === "env") {
    const value = env[reference.name];
    if (value) return new Secret(value);
    const name = VARIABLE_NAME.test(reference.name)
      ? `environment variable ${reference.name}`
      : "the environment variable that it names";
    problem(`${name} to be set`, value === undefined ? "nothing" : "an empty one");
    return undefined;
  }
  const path = pathOf(reference.path, env);
  if (path === undefined) {
    problem(`environment variable ${CREDENTIALS} to be set by the service manager`, "nothing");
    return undefined;
  }
  try {
    // Editors and `echo` end a file with a line break. Secrets never end with one.
    const value = readFileSync(resolve(base, path), "utf8").replace(/\r?\n$/, "");
    if (value !== "") return new Secret(value);
    problem("a file with the secret in it", "an empty file");
  } catch (error) {
    problem("a readable file with the secret in it", `none (${(error as NodeJS.ErrnoException).code ?? "unreadable"})`);
  }
  return undefined;
}

/** The absolute path of the file that a secret is written to be in, or undefined. */
export function secretFileOf(
  written: unknown,
  base: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const reference = readReference(written);
  const path = reference?.kind === "file" ? pathOf(reference.path, env) : undefined;
  return path === undefined ? undefined : resolve(base, path);
}

/** Where a secret is looked up, for a listing: `environment NAME`, `file` or `command`. Undefined for a secret that is written out. */
export function referenceInWords(written: unknown): string | undefined {
  // Not every secret may be a command: its schema says that.
  if (typeof written === "object" && written !== null && "command" in written) return "command";
  const reference = readReference(written);
  if (reference?.kind === "env") return VARIABLE_NAME.test(reference.name) ? `environment ${reference.name}` : "environment";
  return reference && "file";
}

/** Names of this form are certainly not a secret by mistake. */
const VARIABLE_NAME = /^[A-Z_][A-Z0-9_]{0,63}$/;

/** Where a service manager puts the secrets of a service. systemd sets it, and the path differs between the instances of a template unit. */
const CREDENTIALS = "CREDENTIALS_DIRECTORY";

/** `$CREDENTIALS_DIRECTORY/NAME` is a file of that folder. Other variables in a path have no meaning. Undefined if the variable is not set. */
function pathOf(path: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const start = `$${CREDENTIALS}/`;
  if (!path.startsWith(start)) return path;
  return env[CREDENTIALS] && join(env[CREDENTIALS], path.slice(start.length));
}

function readReference(written: unknown): { kind: "env"; name: string } | { kind: "file"; path: string } | undefined {
  if (typeof written !== "object" || written === null || written instanceof Secret) return undefined;
  const [[key, value] = [], ...others] = Object.entries(written);
  if (others.length > 0 || typeof value !== "string" || value === "") return undefined;
  if (key === "env") return { kind: "env", name: value };
  return key === "file" ? { kind: "file", path: value } : undefined;
}
