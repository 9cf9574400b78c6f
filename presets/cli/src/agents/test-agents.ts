import { createSystemClock } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { readAgentCases } from "@portico/presets/platform/agent-tests/case-file";
import { type AgentCaseGiven, runAgentCase } from "@portico/presets/platform/agent-tests/run-agent-case";
import { turnsOf } from "@portico/presets/platform/agents-of";
import { pricesOf } from "@portico/presets/platform/prices-of";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { FileResult } from "../case-lines.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../read-options.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { openTestedAgent } from "./tested-agent.ts";

/**
 * Run the cases of these files one after another. Calls nothing outside the process. Throws CommandFailed: 66 if a file cannot be read, 1 if a
 * file is invalid.
 */
export async function testAgents(flags: SettingsFlags, files: readonly string[]): Promise<readonly FileResult[]> {
  const { settings } = await readSettings(flags);
  const checks = new SchemaChecks(createSystemClock());
  try {
    const results: FileResult[] = [];
    for (const file of files) results.push(await testFile(file, { settings, checks }));
    return results;
  } finally {
    await checks.close();
  }
}

async function testFile(
  file: string,
  { settings, checks }: { readonly settings: PlatformSettings; readonly checks: SchemaChecks },
): Promise<FileResult> {
  const read = await readAgentCases(await readNamedFile(file), checks);
  if ("problems" in read) throw new CommandFailed(read.problems.map((problem) => `${file}: ${problem}`).join("\n"), EXIT.failed);
  const { agent: named, tools, cases } = read.cases;
  const tested = await openTestedAgent(named, { file, settings });
  try {
    const given: AgentCaseGiven = { ...optionsOf(settings), agent: tested.agent, tools, checks };
    const done: FileResult["cases"][number][] = [];
    for (const test of cases) {
      const { found: _found, ...result } = await runAgentCase(test, given);
      done.push(result);
    }
    return { file, cases: done };
  } finally {
    await tested.close();
  }
}

/** What of an instance's settings changes the turns of its agents. */
function optionsOf(settings: PlatformSettings): Pick<AgentCaseGiven, "turns" | "loop" | "prices"> {
  const { toolPolicy } = turnsOf(settings);
  return { turns: { toolPolicy }, loop: { context: settings.agent.context }, prices: pricesOf(settings) };
}
