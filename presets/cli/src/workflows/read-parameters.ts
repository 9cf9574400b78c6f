import { text } from "node:stream/consumers";
import { parseJson } from "@portico/core";
import { idempotencyKeyOf } from "@portico/core/kit";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { parseJsonObject, readNamedFile } from "../read-options.ts";
import type { Resuming } from "./running-service.ts";

type Parameters = Readonly<Record<string, unknown>>;

/** JSON Schema of an object. */
interface ParameterSchema {
  readonly properties?: unknown;
}

/**
 * The parameters of a run, from a file (`-`: standard input) and from each `name=value`, which replaces the file's value of that name. A value that the
 * workflow's schema declares as a string is used as text. Throws CommandFailed: 64 for invalid parameters, 66 for a file that cannot be read.
 */
export async function readParameters(given: {
  readonly input?: string | undefined;
  readonly params: readonly string[];
  /** Called only if there are `name=value` parameters. */
  schema(): Promise<ParameterSchema>;
}): Promise<Parameters> {
  const named = new Map<string, string>();
  for (const param of given.params) {
    const end = param.indexOf("=");
    if (end < 1) throw new CommandFailed("Option --param must have the form name=value", EXIT.usage);
    const name = param.slice(0, end);
    if (named.has(name)) throw new CommandFailed(`Option --param names "${name}" twice`, EXIT.usage);
    named.set(name, param.slice(end + 1));
  }
  const file = given.input === undefined ? {} : await readInput(given.input);
  if (named.size === 0) return file;
  const { properties } = await given.schema();
  const values = [...named].map(([name, written]) => [name, isText(properties, name) ? written : valueOf(written)] as const);
  return Object.fromEntries([...Object.entries(file), ...values]);
}

function isText(properties: unknown, name: string): boolean {
  const isNamed = typeof properties === "object" && properties !== null && Object.hasOwn(properties, name);
  const property: unknown = isNamed ? (properties as Parameters)[name] : undefined;
  return typeof property === "object" && property !== null && "type" in property && property.type === "string";
}

/** Parses JSON. Returns the text itself if it is not JSON, or if a number would change: `1.10`, or an id of 20 digits. */
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
  throw new CommandFailed(`${file === "-" ? "Standard input" : file} is not a JSON object`, EXIT.usage);
}

/** The flags of `portico workflow resume`. Throws CommandFailed (64). */
export function readResuming({
  from,
  as = "again",
  output,
  definition = "own",
  plan: version,
}: {
  readonly from?: string | undefined;
  readonly as?: string | undefined;
  readonly output?: string | undefined;
  readonly definition?: string | undefined;
  readonly plan?: string | undefined;
}): Resuming {
  if (definition !== "own" && definition !== "current")
    throw new CommandFailed("Option --definition must be own or current", EXIT.usage);
  if (as !== "again" && as !== "done") throw new CommandFailed("Option --as must be again or done", EXIT.usage);
  if (output === undefined) return { from, as, definition, version };
  if (as !== "done") throw new CommandFailed("Option --output needs --as done", EXIT.usage);
  try {
    return { from, as, definition, version, output: parseJson(output) };
  } catch {
    // The parser's error quotes the text, which may be confidential.
    throw new CommandFailed("Option --output must be JSON", EXIT.usage);
  }
}

/** The option `--idempotency-key`, as the header has it. */
export function readIdempotencyKey(key: string | undefined): string | undefined {
  if (idempotencyKeyOf({ header: () => key }) !== "invalid") return key;
  const form = "1-256 visible characters, without commas unless it is in quotes";
  throw new CommandFailed(`Option --idempotency-key must have ${form}`, EXIT.usage);
}
