import { existsSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readTextFile } from "./read-options.ts";

/** File names that are looked up in the working directory (open points 1). */
export const CONFIG_FILES = ["ts", "mjs", "json", "yaml", "yml"].map((extension) => `portico.config.${extension}`);

/** A configuration file that was read. */
export interface ConfigFile {
  /** An absolute path. */
  readonly path: string;
  readonly content: unknown;
}

/**
 * The named configuration file, or else the one in the working directory, if it exists. Throws CommandFailed (78) with one line if
 * the file is missing or broken, or if the directory has several: users should not have to guess which file counts.
 */
export async function readConfigFile(named: string | undefined, cwd: string): Promise<ConfigFile | undefined> {
  const path = named === undefined ? findConfigFile(cwd) : resolve(cwd, named);
  if (path === undefined) return undefined;
  if (!existsSync(path)) throw unusable(`The configuration file ${path} does not exist`);
  return { path, content: await readContent(path) };
}

function findConfigFile(cwd: string): string | undefined {
  const present = CONFIG_FILES.filter((name) => existsSync(join(cwd, name)));
  if (present.length > 1)
    throw unusable(`Several configuration files: ${present.join(", ")}. Keep one, or name one with --config`);
  return present[0] && join(cwd, present[0]);
}

async function readContent(path: string): Promise<unknown> {
  switch (extname(path)) {
    case ".json":
      return parseJson(path, await readText(path));
    case ".yaml":
    case ".yml":
      return parseYaml(path, await readText(path));
    case ".ts":
    case ".mts":
    case ".js":
    case ".mjs":
      return importDefault(path);
    default:
      throw unusable(`${path}: the name of a configuration file must end in .ts, .mjs, .json, .yaml or .yml`);
  }
}

async function readText(path: string): Promise<string> {
  return (await readTextFile(path, EXIT.config)).replace(/^\uFEFF/, "");
}

/** Only the position is kept of a parser's message: parsers quote the text around an error, and this text may be a secret. */
function parseJson(path: string, text: string): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    const { line, column } = jsonFault(text);
    throw unusable(`${path}:${line}:${column} is not valid JSON`);
  }
}

async function parseYaml(path: string, text: string): Promise<unknown> {
  const { LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const error = document.errors[0];
  if (error) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw unusable(`${path}:${line}:${col} is not valid YAML: ${error.code.toLowerCase().replaceAll("_", " ")}`);
  }
  try {
    return document.toJS() ?? {};
  } catch {
    throw unusable(`${path} is not valid YAML: its aliases cannot be resolved`);
  }
}

async function importDefault(path: string): Promise<unknown> {
  let module: Record<string, unknown>;
  try {
    module = await import(pathToFileURL(path).href);
  } catch (cause) {
    throw unusable(`${path}${placeOf(cause, path)} cannot be loaded: ${reasonOf(cause)}`, cause);
  }
  if (module["default"] === undefined) throw unusable(`${path} has no default export: export the configuration as the default`);
  return module["default"];
}

/** `:line:column` of the first frame inside the file, if the error has one. */
function placeOf(error: unknown, path: string): string {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  for (const name of [pathToFileURL(path).href, path]) {
    const at = stack.indexOf(`${name}:`);
    if (at >= 0) return /^(?::\d+)+/.exec(stack.slice(at + name.length))?.[0] ?? "";
  }
  return "";
}

/** The kind of error and its first line. For errors of the JSON parser only the kind: they quote the text, which may be a secret. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "it threw a value that is not an Error";
  const [first = ""] = error.message.split("\n");
  return first.includes("JSON") ? error.name : `${error.name}: ${first.trim()}`;
}

function unusable(message: string, cause?: unknown): CommandFailed {
  return new CommandFailed(message, EXIT.config, cause);
}

/** The position at which a text stops being JSON (line and column from 1). For a truncated text, the position after its end. */
export function jsonFault(text: string): { readonly line: number; readonly column: number } {
  const before = text.slice(0, faultAt(text));
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: before.length - lineStart + 1 };
}

const SPACE = /[ \t\r\n]*/y;
const SCALAR =
  /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/y;
const KEY = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

/** Walks the text like a parser, with its own stack, because JavaScript engines report the position of only some errors. */
function faultAt(text: string): number {
  const open: ("{" | "[")[] = [];
  let at = 0;
  let wants: "value" | "first" | "key" | "after" = "value";

  const take = (token: RegExp): boolean => {
    token.lastIndex = at;
    if (!token.test(text)) return false;
    at = token.lastIndex;
    return true;
  };
  const takeKey = (): boolean => take(KEY) && take(SPACE) && text[at] === ":" && ++at > 0;

  for (;;) {
    take(SPACE);
    const character = text[at];
    const isClosing = character === (open.at(-1) === "{" ? "}" : "]") && open.length > 0;
    if (isClosing && (wants === "first" || wants === "after")) {
      open.pop();
      at++;
      wants = "after";
    } else if (wants === "after") {
      if (character !== "," || open.length === 0) return at;
      at++;
      wants = open.at(-1) === "{" ? "key" : "value";
    } else if (wants === "key" || (wants === "first" && open.at(-1) === "{")) {
      if (!takeKey()) return at;
      wants = "value";
    } else if (character === "{" || character === "[") {
      open.push(character);
      at++;
      wants = "first";
    } else if (take(SCALAR)) {
      wants = "after";
    } else {
      return at;
    }
  }
}
