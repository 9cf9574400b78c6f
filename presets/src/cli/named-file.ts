import { readFile } from "node:fs/promises";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** The text of a file that the command line names. Throws CommandFailed (66). */
export async function readNamedFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new CommandFailed(`${file} cannot be read (${(cause as NodeJS.ErrnoException).code})`, EXIT.noInput, cause);
  }
}
