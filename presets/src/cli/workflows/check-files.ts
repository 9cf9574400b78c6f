import { basename } from "node:path";
import { loadDefinition } from "@portico/plugins/workflow-service/load-definition";
import { readNamedFile } from "../named-file.ts";
import { DEFAULT_PRESET, loadPreset } from "../preset-table.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { readNodeRules } from "./node-rules.ts";

/** One thing that is wrong with a definition; line and column count from 1. */
export interface FileProblem {
  /** As it was named. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** JSONPath of the offending key or value. */
  readonly path: string;
  readonly message: string;
}

/** Everything that is wrong with these definitions, in the order of the files. Throws CommandFailed (66) where one cannot be read. */
export async function checkFiles(
  flags: SettingsFlags,
  { files, preset = DEFAULT_PRESET }: { readonly files: readonly string[]; readonly preset?: string | undefined },
): Promise<readonly FileProblem[]> {
  await loadPreset(preset);
  const { settings } = await readSettings(flags);
  const rules = await readNodeRules({ settings, preset });
  const problems: FileProblem[] = [];
  const holders = new Map<string, string>();
  for (const file of files) {
    const loaded = loadDefinition({ name: basename(file), text: await readNamedFile(file) }, rules);
    for (const { line, column, path, message } of loaded.problems ?? []) problems.push({ file, line, column, path, message });
    const id = loaded.definition?.id;
    if (id === undefined) continue;
    const holder = holders.get(id);
    if (holder === undefined) holders.set(id, file);
    else problems.push({ file, line: 1, column: 1, path: "$.id", message: `The definition "${holder}" has the id "${id}", too` });
  }
  return problems;
}
