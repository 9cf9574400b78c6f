import { readFile } from "node:fs/promises";
import { notUtf8 } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";

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
