import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { caseFileOfRun } from "@portico/plugins/workflow-service/client";
import { readCases } from "@portico/presets/platform/workflow-tests/case-file";
import { rulesOfCases, secretsOfCases, unknownIds } from "@portico/presets/platform/workflow-tests/prepare-cases";
import { runCase } from "@portico/presets/platform/workflow-tests/run-case";
import { caseFileText } from "../case-file-text.ts";
import type { FileResult } from "../case-lines.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../read-options.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { readDefinitionFile } from "./check-files.ts";
import { readNodeRules } from "./node-rules.ts";
import type { RunDetail, RunName, RunningService } from "./running-service.ts";

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

/** The text of a file of cases with one case, which repeats a run. Throws CommandFailed (1) if the run has not ended. */
export async function recordCase(
  service: RunningService,
  run: RunName,
  { definitionsDir, out }: { readonly definitionsDir: string; readonly out: string | undefined },
): Promise<string> {
  const detail = await service.run(run);
  if (!hasEnded(detail)) throw new CommandFailed(`The run ${run.runId} has not ended`, EXIT.failed);
  const { dslPath } = await service.definition(detail.workflowId);
  const folder = out === undefined ? process.cwd() : dirname(resolve(out));
  const definition = relative(folder, join(resolve(definitionsDir), dslPath)).replaceAll(sep, "/");
  return caseFileText(caseFileOfRun(detail, definition));
}

function hasEnded({ status }: RunDetail): boolean {
  return status !== "running" && status !== "waiting_human";
}
