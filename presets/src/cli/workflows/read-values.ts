import { CommandFailed, EXIT } from "../exit-codes.ts";

/** The object that `--values` is as JSON. Throws CommandFailed (64). */
export function readValues(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Its parser quotes the text, which may be confidential.
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new CommandFailed("Option --values is no JSON object", EXIT.usage);
}
