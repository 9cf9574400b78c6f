import { text } from "node:stream/consumers";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../named-file.ts";
import { parseJsonObject } from "./json-object.ts";

type Parameters = Readonly<Record<string, unknown>>;

/**
 * The parameters of a run: those of a file (`-`: standard input), and each `name=value` in place of what the file has under that name. Throws
 * CommandFailed: 64 for what is none, 66 for a file that cannot be read.
 */
export async function readParameters(given: {
  readonly input?: string | undefined;
  readonly params: readonly string[];
}): Promise<Parameters> {
  const named = new Map<string, unknown>();
  for (const param of given.params) {
    const end = param.indexOf("=");
    if (end < 1) throw new CommandFailed("Option --param is not written as name=value", EXIT.usage);
    const name = param.slice(0, end);
    if (named.has(name)) throw new CommandFailed(`Option --param names "${name}" twice`, EXIT.usage);
    named.set(name, valueOf(param.slice(end + 1)));
  }
  const file = given.input === undefined ? {} : await readInput(given.input);
  return Object.fromEntries([...Object.entries(file), ...named]);
}

/** JSON where the text is some, and the text itself otherwise; also for a number that would be another one: `1.10`, or an id of 20 digits. */
function valueOf(written: string): unknown {
  try {
    const value: unknown = JSON.parse(written);
    return typeof value === "number" && String(value) !== written.trim() ? written : value;
  } catch {
    return written;
  }
}

async function readInput(file: string): Promise<Parameters> {
  const parameters = parseJsonObject(file === "-" ? await text(process.stdin) : await readNamedFile(file));
  if (parameters) return parameters;
  throw new CommandFailed(`${file === "-" ? "Standard input" : file} is no JSON object`, EXIT.usage);
}
