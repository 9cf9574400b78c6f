import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { DEFINITION_DEPTH } from "@portico/adapters/stores/workflow-folder";
import { ports } from "@portico/core";
import { type Definition, idOfFile, lintDefinition, loadDefinition } from "@portico/plugins/workflow-service/definitions";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../read-options.ts";
import { loadPreset } from "../preset-table.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { readNodeRules, type ServiceKind, withReferences } from "./node-rules.ts";
import { readDefinitions } from "./read-definitions.ts";

/** One problem of a definition. Line and column count from 1. */
interface FileProblem {
  /** The path as named on the command line, or as found in a named folder. */
  readonly file: string;
  /** A definition with only warnings is usable. */
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** JSONPath of the offending key or value. */
  readonly path: string;
  readonly message: string;
}

/**
 * All problems of these definitions, and of the definitions in these folders, in the order of the files. Throws CommandFailed (66) if a file
 * cannot be read.
 */
export async function checkFiles(
  flags: SettingsFlags,
  { files, preset }: { readonly files: readonly string[]; readonly preset?: string | undefined },
): Promise<readonly FileProblem[]> {
  if (preset !== undefined) await loadPreset(preset);
  const { settings } = await readSettings(flags);
  const service = { settings, preset };
  const rules = await readNodeRules(service);
  const names = await definitionFiles(files);
  const texts = await Promise.all(names.map(async (file) => ({ file, name: basename(file), text: await readNamedFile(file) })));
  const loaded = texts.map((text) => ({ ...text, ...loadDefinition(text, rules) }));
  const ids = new Set(loaded.map(({ name, definition }) => definition?.id ?? idOfFile(name)));
  for (const id of loaded.some(({ text }) => NAMES_WORKFLOW.test(text)) ? await deployedIds(service) : []) ids.add(id);
  const types = withReferences(rules.types, service, ids);

  const problems: FileProblem[] = [];
  const holders = new Map<string, string>();
  for (const { file, name, text, definition } of loaded) {
    // Checked again, now that the ids of all workflows are known.
    const errors = loadDefinition({ name, text }, { ...rules, types }).problems ?? [];
    const warnings = definition ? lintDefinition(definition, types) : [];
    const found = [
      ...errors.map((problem) => ({ file, severity: "error" as const, ...problem })),
      ...warnings.map((problem) => ({ file, severity: "warning" as const, ...problem })),
    ];
    problems.push(...found.sort((one, other) => one.line - other.line || one.column - other.column));
    const id = definition?.id;
    if (id === undefined) continue;
    const holder = holders.get(id);
    if (holder === undefined) holders.set(id, file);
    else {
      const message = `The definition "${holder}" also has the id "${id}"`;
      problems.push({ file, severity: "error", line: 1, column: 1, path: "$.id", message });
    }
  }
  return problems;
}

/** Whether a text may contain a node that runs another workflow. Only such definitions need the ids of all workflows. */
const NAMES_WORKFLOW = /\btype["']?\s*:\s*["']?workflow\b/;

/** Includes broken definitions: their problems are not problems of the definitions that name them. */
async function deployedIds({ settings }: ServiceKind): Promise<readonly string[]> {
  try {
    const { deployed, broken } = await readDefinitions(settings);
    return [...deployed, ...broken.map(({ name }) => idOfFile(name))];
  } catch (error) {
    if (error instanceof ports.DocumentsUnavailable) return [];
    throw error;
  }
}

const DEFINITION_NAME = /\.(?:ya?ml|json)$/i;

/** The named files, and the definitions in the named folders, as a service finds them. Throws CommandFailed (66). */
async function definitionFiles(named: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(named.map(async (path) => ((await isFolder(path)) ? definitionsIn(path) : [path])));
  return [...new Set(found.flat())];
}

async function isFolder(path: string): Promise<boolean> {
  // A missing file is reported when it is read.
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

async function definitionsIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true }).catch((cause: NodeJS.ErrnoException) => {
    throw new CommandFailed(`${folder} cannot be read (${cause.code})`, EXIT.noInput, cause);
  });
  const isRead = (name: string) => {
    const segments = name.split(/[/\\]/);
    return segments.length <= DEFINITION_DEPTH && DEFINITION_NAME.test(name) && !segments.some((each) => each.startsWith("."));
  };
  return names
    .filter(isRead)
    .sort()
    .map((name) => join(folder, name));
}

/** The definition of a file. Throws CommandFailed: 66 if the file cannot be read, 1 with all problems if it is invalid. */
export async function readDefinitionFile(file: string, loading: Parameters<typeof loadDefinition>[1]): Promise<Definition> {
  const { definition, problems } = loadDefinition({ name: basename(file), text: await readNamedFile(file) }, loading);
  if (definition) return definition;
  const lines = problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  throw new CommandFailed(lines.join("\n"), EXIT.failed);
}
