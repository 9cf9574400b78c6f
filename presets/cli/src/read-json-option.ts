import { CommandFailed, EXIT } from "./exit-codes.ts";
import { parseJsonObject } from "./workflows/json-object.ts";

/** Parses an option whose value must be a JSON object. Throws CommandFailed (64). */
export function readJsonOption(name: string, text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  const values = parseJsonObject(text);
  if (values) return values;
  throw new CommandFailed(`Option --${name} must be a JSON object`, EXIT.usage);
}
