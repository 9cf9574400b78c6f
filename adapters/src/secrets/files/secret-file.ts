import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { ports } from "@portico/core";

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** The file of names and values. Both functions throw SecretsUnavailable; no message and no cause holds a part of the file. */
export interface SecretFile {
  /** Nothing kept where there is no file yet. */
  read(): ReadonlyMap<string, string>;
  /** Replace the file in one step, durably. Only under the lock. */
  write(secrets: ReadonlyMap<string, string>): void;
}

/** The file at `path`, which need not exist yet. */
export function createSecretFile(path: string): SecretFile {
  return {
    read() {
      const text = readPrivate(path);
      return text === undefined ? new Map() : parseSecrets(text);
    },
    write(secrets) {
      try {
        replaceFile(path, `${JSON.stringify(Object.fromEntries(secrets), undefined, 2)}\n`);
      } catch (cause) {
        throw new ports.SecretsUnavailable("The secrets' file cannot be written", { cause });
      }
    },
  };
}

function readPrivate(path: string): string | undefined {
  try {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode;
    if (mode === undefined) return undefined;
    // A copy or a restored backup easily comes with the wrong mode: put right rather than left open or refused.
    if (mode & OTHERS) chmodSync(path, OWNER_ONLY);
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new ports.SecretsUnavailable("The secrets' file cannot be read", { cause });
  }
}

function parseSecrets(text: string): ReadonlyMap<string, string> {
  const entries = Object.entries(parseObject(text));
  for (const [, value] of entries) {
    if (typeof value !== "string" || value === "")
      throw new ports.SecretsUnavailable("The secrets' file has a value that is no text");
  }
  return new Map(entries as [string, string][]);
}

function parseObject(text: string): object {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // Falls through, and without its cause: a parser's message quotes what it read.
  }
  throw new ports.SecretsUnavailable("The secrets' file is not a JSON object of names and values");
}

/** A reader sees the old file or the new one, and after a kill there is one of both. */
function replaceFile(path: string, text: string): void {
  // One fixed name: what a killed process left of it is overwritten by the next one, since only the lock's holder comes here.
  const fresh = `${path}.new`;
  const file = openSync(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, OWNER_ONLY);
  try {
    fchmodSync(file, OWNER_ONLY);
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
  syncFolder(dirname(path));
}

/** The new name is durable only when its folder is. */
function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
