import type { SchemaChecks } from "@portico/core/kit";
import { type AgentCases, readAgentCases } from "@portico/presets/platform/agent-tests/case-file";
import type { AgentCaseGiven } from "@portico/presets/platform/agent-tests/run-agent-case";
import { turnsOf } from "@portico/presets/platform/agents-of";
import { pricesOf } from "@portico/presets/platform/prices-of";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readNamedFile } from "../read-options.ts";
import { openTestedAgent } from "./tested-agent.ts";

/** A file of cases with its agent, until `close` is called. */
export interface OpenCases {
  readonly file: string;
  readonly cases: AgentCases["cases"];
  readonly given: AgentCaseGiven;
  close(): Promise<void>;
}

/** Reads a file of cases, and the agent that it names. Throws CommandFailed: 66 if a file cannot be read, 1 if a file is invalid. */
export async function openCases(
  file: string,
  { settings, checks }: { readonly settings: PlatformSettings; readonly checks: SchemaChecks },
): Promise<OpenCases> {
  const read = await readAgentCases(await readNamedFile(file), checks);
  if ("problems" in read) throw new CommandFailed(read.problems.map((problem) => `${file}: ${problem}`).join("\n"), EXIT.failed);
  const { agent: named, tools, cases } = read.cases;
  const { agent, close } = await openTestedAgent(named, { file, settings });
  return { file, cases, given: { ...optionsOf(settings), agent, tools, checks }, close };
}

/** What of an instance's settings changes the turns of its agents. */
function optionsOf(settings: PlatformSettings): Pick<AgentCaseGiven, "turns" | "loop" | "prices"> {
  const { toolPolicy } = turnsOf(settings);
  return { turns: { toolPolicy }, loop: { context: settings.agent.context }, prices: pricesOf(settings) };
}
