import { basename } from "node:path";
import { type Definition, loadDefinition } from "@portico/plugins/workflow-service/definitions";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../named-file.ts";

/** The definition of a file. Throws CommandFailed: 66 if the file cannot be read, 1 with all problems if it is invalid. */
export async function readDefinitionFile(file: string, loading: Parameters<typeof loadDefinition>[1]): Promise<Definition> {
  const { definition, problems } = loadDefinition({ name: basename(file), text: await readNamedFile(file) }, loading);
  if (definition) return definition;
  const lines = problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  throw new CommandFailed(lines.join("\n"), EXIT.failed);
}
