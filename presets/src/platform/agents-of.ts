import type { LoopOptions } from "@portico/adapters/agent-engines/loop";
import { agentDocuments } from "@portico/adapters/stores/agent-documents";
import type { Adapter } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";
import { agentsAt } from "../settings/documents-place.ts";

/** The agents of the settings, and what executes their turns. */
export function agentsOf(agent: PlatformSettings["agent"]): readonly Adapter[] {
  return agentDocuments(agentsAt(agent), loopOptions(agent));
}

/** The settings of the built-in agent engine. */
export function loopOptions({ context }: PlatformSettings["agent"]): LoopOptions {
  const { tokens, tokensOf, resultCharacters, ...switches } = context;
  return { contextTokens: tokens, contextTokensOf: tokensOf, toolResultCharacters: resultCharacters, ...switches };
}
