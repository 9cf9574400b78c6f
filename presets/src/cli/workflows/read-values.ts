import { CommandFailed, EXIT } from "../exit-codes.ts";
import { parseJsonObject } from "./json-object.ts";

/** Parses `--values`, which must be a JSON object. Throws CommandFailed (64). */
export function readValues(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  const values = parseJsonObject(text);
  if (values) return values;
  throw new CommandFailed("Option --values must be a JSON object", EXIT.usage);
}
