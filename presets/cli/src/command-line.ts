import { parseArgs } from "node:util";
import type { ArgsDef, CommandDef, CommandMeta } from "citty";
import { CommandFailed, EXIT } from "./exit-codes.ts";

export interface FoundCommand {
  readonly command: CommandDef;
  /** `portico token` for `issue`; undefined for the root. */
  readonly parentName: string | undefined;
  /** The arguments after the command's name. */
  readonly args: readonly string[];
  readonly wantsHelp: boolean;
}

/**
 * Finds the command of `root` that a command line names. Checks strictly: citty ignores unknown flags and surplus words, and a misspelt
 * `--data-dri` would start with the wrong directory. Throws CommandFailed (64).
 */
export async function findCommand(root: CommandDef, line: readonly string[]): Promise<FoundCommand> {
  let command = root;
  let names = [nameOf(root)];
  let args = line;
  for (;;) {
    const children = await resolved(command.subCommands);
    if (!children) break;
    const usual = await resolved(command.default);
    // The default command of a group may be left out, also before its options.
    const [name, ...rest] = usual !== undefined && (!args[0] || isOption(args[0])) ? [usual, ...args] : args;
    if (name === undefined || isHelp(name)) return found(command, names, [], true);
    // `portico help token issue` is `portico token issue --help`.
    if (name === "help" && !Object.hasOwn(children, name)) {
      args = [...rest.filter((word) => !isHelp(word)), "--help"];
      continue;
    }
    if (name.startsWith("-")) throw usage(`Unknown option ${name.split("=")[0]}`, names);
    const child = Object.hasOwn(children, name) ? await resolved(children[name]) : undefined;
    if (!child) throw await unknownCommand(name, Object.keys(children), names);
    command = child;
    names = [...names, name];
    args = rest;
  }
  const optionsEnd = args.indexOf("--");
  const wantsHelp = (optionsEnd < 0 ? args : args.slice(0, optionsEnd)).some(isHelp);
  if (!wantsHelp) await checkArguments(((await resolved(command.args)) ?? {}) as ArgsDef, args, names);
  return found(command, names, args, wantsHelp);
}

/** The name of a program: every command is defined with its name. */
export function nameOf({ meta }: CommandDef<any>): string {
  return (meta as CommandMeta | undefined)?.name ?? "";
}

/** Every value of a repeatable option, in a command line that `findCommand` accepted. citty keeps only the last value. */
export function valuesOf(args: readonly string[], name: string): readonly string[] {
  const options = { [name]: { type: "string", multiple: true } } as const;
  const { values } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false });
  return (values[name] as string[] | undefined) ?? [];
}

function found(command: CommandDef, names: readonly string[], args: readonly string[], wantsHelp: boolean): FoundCommand {
  return { command, parentName: names.slice(0, -1).join(" ") || undefined, args, wantsHelp };
}

async function checkArguments(known: ArgsDef, args: readonly string[], names: readonly string[]): Promise<void> {
  const flags = Object.entries(known).filter(([, definition]) => definition.type !== "positional");
  const positionals = Object.entries(known).filter(([, definition]) => definition.type === "positional");
  const options = Object.fromEntries(
    flags.map(([name, { type }]) => [name, { type: type === "boolean" ? ("boolean" as const) : ("string" as const) }]),
  );
  let words: string[];
  let given: Readonly<Record<string, unknown>>;
  try {
    const parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
    const empty = Object.entries(parsed.values).find(([, value]) => value === "");
    if (empty) throw usage(`Option --${empty[0]} needs a value`, names);
    words = parsed.positionals;
    given = parsed.values;
  } catch (error) {
    throw error instanceof CommandFailed ? error : await optionFailure(error, Object.keys(options), names);
  }
  const last = positionals.at(-1)?.[1];
  const takesMore = last !== undefined && "valueHint" in last && last.valueHint?.endsWith("…");
  if (words.length > positionals.length && !takesMore) throw usage(`Unexpected argument "${words[positionals.length]}"`, names);
  const missingWord = positionals.slice(words.length).find(([, definition]) => definition.required !== false);
  if (missingWord) throw usage(`Missing argument ${missingWord[0].toUpperCase()}`, names);
  const missingFlag = flags.find(([name, definition]) => definition.required && given[name] === undefined);
  if (missingFlag) throw usage(`Option --${missingFlag[0]} is required`, names);
}

/** Short messages about the quoted option, because Node's own messages have several sentences. */
async function optionFailure(error: unknown, known: readonly string[], names: readonly string[]): Promise<unknown> {
  const { code, message } = error as NodeJS.ErrnoException;
  const option = /'(-[^' ]+)/.exec(message ?? "")?.[1] ?? "";
  if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") {
    const { nearestWord } = await import("@portico/core");
    const nearest = nearestWord(option.replace(/^-+/, ""), known);
    return usage(`Unknown option ${option}${nearest ? `; did you mean --${nearest}?` : ""}`, names);
  }
  if (code === "ERR_PARSE_ARGS_INVALID_OPTION_VALUE") {
    return usage(
      message?.includes("does not take") ? `Option ${option} does not take a value` : `Option ${option} needs a value`,
      names,
    );
  }
  return error;
}

async function unknownCommand(name: string, known: readonly string[], names: readonly string[]): Promise<CommandFailed> {
  const { nearestWord } = await import("@portico/core");
  const nearest = nearestWord(name, known);
  return usage(`Unknown command "${name}"${nearest ? `; did you mean "${nearest}"?` : ""}`, names);
}

function usage(message: string, names: readonly string[]): CommandFailed {
  return new CommandFailed(`${message} (see ${names.join(" ")} --help)`, EXIT.usage);
}

function isOption(argument: string): boolean {
  return argument.startsWith("-") && !isHelp(argument);
}

function isHelp(argument: string): boolean {
  return argument === "--help" || argument === "-h";
}

async function resolved<T>(value: T | Promise<T> | (() => T | Promise<T>) | undefined): Promise<T | undefined> {
  return typeof value === "function" ? (value as () => T | Promise<T>)() : value;
}
