import { createSystemClock } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { runAgentCase } from "@portico/presets/platform/agent-tests/run-agent-case";
import type { FileResult } from "../case-lines.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { openCases } from "./case-inputs.ts";

/**
 * Run the cases of these files one after another. Calls nothing outside the process. Throws CommandFailed: 66 if a file cannot be read, 1 if a
 * file is invalid.
 */
export async function testAgents(flags: SettingsFlags, files: readonly string[]): Promise<readonly FileResult[]> {
  const { settings } = await readSettings(flags);
  const checks = new SchemaChecks(createSystemClock());
  try {
    const results: FileResult[] = [];
    for (const file of files) {
      const { cases, given, close } = await openCases(file, { settings, checks });
      try {
        const done: FileResult["cases"][number][] = [];
        for (const test of cases) {
          const { found: _found, ...result } = await runAgentCase(test, given);
          done.push(result);
        }
        results.push({ file, cases: done });
      } finally {
        await close();
      }
    }
    return results;
  } finally {
    await checks.close();
  }
}
