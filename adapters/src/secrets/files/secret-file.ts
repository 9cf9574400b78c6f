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
import { findStoreTooNew, ports, stepsFrom } from "@portico/core";

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

type Kept = ReadonlyMap<string, string>;

/** Stored next to the secrets, under an invalid secret name, and as a text, so that older versions can still read the file. */
export const FORMAT_NAME = "$format";
/** Steps from one format of the file to the next. A file without a mark has format 1. */
const STEPS: readonly ((kept: Kept) => Kept)[] = [];
/** The newest format of the file. */
export const SECRET_FILE_FORMAT: number = STEPS.length + 1;

/** The file of names and values. Both functions throw SecretsUnavailable. No message and no cause contains a part of the file. */
export interface SecretFile {
  /** Empty if the file does not exist yet. */
  read(): ReadonlyMap<string, string>;
  /** Replace the file atomically and durably. Only under the lock. */
  write(secrets: ReadonlyMap<string, string>): void;
}

/** The file at `path`, which may not exist yet. */
export function createSecretFile(path: string): SecretFile {
  return {
    read() {
      const text = readPrivate(path);
      return text === undefined ? new Map() : parseSecrets(text);
    },
    write(secrets) {
      try {
        const marked = { [FORMAT_NAME]: `${STEPS.length + 1}`, ...Object.fromEntries(secrets) };
        replaceFile(path, `${JSON.stringify(marked, undefined, 2)}\n`);
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
    // A copy or a restored backup often has the wrong mode. The mode is corrected: the file is neither left open nor refused.
    if (mode & OTHERS) chmodSync(path, OWNER_ONLY);
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new ports.SecretsUnavailable("The secrets' file cannot be read", { cause });
  }
}

function parseSecrets(text: string): Kept {
  const { [FORMAT_NAME]: format = "1", ...values } = parseObject(text) as Readonly<Record<string, unknown>>;
  // Checked first: a file of a newer version may have another structure.
  const steps = stepsOf(Number(format));
  const entries = Object.entries(values);
  for (const [, value] of entries) {
    if (typeof value !== "string" || value === "")
      throw new ports.SecretsUnavailable("The secrets' file has a value that is not text");
  }
  return steps.reduce((kept, step) => step(kept), new Map(entries as [string, string][]) as Kept);
}

function stepsOf(format: number): typeof STEPS {
  try {
    return stepsFrom("The secrets' file", format, STEPS);
  } catch (cause) {
    throw new ports.SecretsUnavailable(findStoreTooNew(cause)?.message ?? "The secrets' file does not tell its format", {
      cause,
    });
  }
}

function parseObject(text: string): object {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // Falls through, without its cause: a parser's message quotes its input.
  }
  throw new ports.SecretsUnavailable("The secrets' file is not a JSON object of names and values");
}

/** A reader sees either the old file or the new one. After a kill, one of both exists. */
function replaceFile(path: string, text: string): void {
  // One fixed name: the next process overwrites the rest of a killed one, because only the lock's holder writes here.
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

/** The new name is durable only when its folder is synced. */
function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
