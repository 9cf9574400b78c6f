import { readFile } from "node:fs/promises";
import { isExistingDay, notUtf8, parseDuration, parseJson } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** Parses an option whose value must be a JSON object. Throws CommandFailed (64). */
export function readJsonOption(name: string, text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  const values = parseJsonObject(text);
  if (values) return values;
  throw new CommandFailed(`Option --${name} must be a JSON object`, EXIT.usage);
}

/** The time of an option, by default `--since`, in milliseconds since 1970. Throws CommandFailed (64). */
export function readSince(written: string, option = "since"): number {
  const duration = parseDuration(written);
  if (duration !== undefined) return Date.now() - duration;
  const time = /^\d{4}-\d\d-\d\d(T|$)/.test(written) && isExistingDay(written) ? Date.parse(written) : Number.NaN;
  if (Number.isNaN(time))
    throw new CommandFailed(`Option --${option} must be a duration, such as 12h or 30d, or a time in ISO 8601`, EXIT.usage);
  return time;
}

/** The text of a file that the command line names. Throws CommandFailed (66). */
export async function readNamedFile(file: string): Promise<string> {
  return readTextFile(file, EXIT.noInput);
}

/** The text of a file. Throws CommandFailed with the given code, also for other encodings than UTF-8. */
export async function readTextFile(file: string, exitCode: number): Promise<string> {
  const bytes = await readFile(file).catch((cause: NodeJS.ErrnoException) => {
    throw new CommandFailed(`${file} cannot be read (${cause.code ?? "unknown reason"})`, exitCode, cause);
  });
  const fault = notUtf8(bytes);
  if (fault !== undefined) throw new CommandFailed(`${file} ${fault}`, exitCode);
  return bytes.toString("utf8");
}

/** Parses a text as a JSON object. Returns undefined if the text is not a JSON object. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = parseJson(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    // The parser's error quotes the text, which may be confidential.
    return undefined;
  }
}
