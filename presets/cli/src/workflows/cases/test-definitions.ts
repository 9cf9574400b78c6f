import { basename, dirname, resolve } from "node:path";
import type { TestedCase } from "@portico/plugins/workflow-service/definition-tests";
import { readCases } from "@portico/presets/platform/workflow-tests/case-file";
import { rulesOfCases, secretsOfCases, unknownIds } from "@portico/presets/platform/workflow-tests/prepare-cases";
import { runCase } from "@portico/presets/platform/workflow-tests/run-case";
import { CommandFailed, EXIT } from "../../exit-codes.ts";
import { readNamedFile } from "../../named-file.ts";
import { readSettings } from "../../read-settings.ts";
import type { SettingsFlags } from "../../settings-flags.ts";
import { readNodeRules } from "../node-rules.ts";
import { readDefinitionFile } from "../read-definition-file.ts";

/** The results of one file of cases. */
export interface FileResult {
  readonly file: string;
  readonly cases: readonly Omit<TestedCase, "found">[];
}

/**
 * Run the cases of these files one after another. Calls nothing outside the process. Throws CommandFailed: 66 if a file cannot be read, 1 if a
 * file is invalid.
 */
export async function testDefinitions(flags: SettingsFlags, files: readonly string[]): Promise<readonly FileResult[]> {
  const { settings } = await readSettings(flags);
  const { types: known, secretNames } = await readNodeRules({ settings });
  const types = rulesOfCases(known);
  const results: FileResult[] = [];
  for (const file of files) {
    const refuse = (problems: readonly string[]): never => {
      throw new CommandFailed(problems.map((problem) => `${file}: ${problem}`).join("\n"), EXIT.failed);
    };
    const read = readCases(await readNamedFile(file));
    if ("problems" in read) return refuse(read.problems);
    const { cases } = read;
    const path = resolve(dirname(file), cases.definition);
    const secrets = secretsOfCases(secretNames, cases);
    const definition = await readDefinitionFile(path, { types, secretNames: Object.keys(secrets) });
    const [unknown] = unknownIds(cases, definition);
    if (unknown !== undefined) refuse([unknown]);
    const given = { definition, document: basename(path), types, secrets };
    const done: FileResult["cases"][number][] = [];
    for (const test of cases.cases) {
      const { found: _found, ...result } = await runCase(test, given);
      done.push(result);
    }
    results.push({ file, cases: done });
  }
  return results;
}
