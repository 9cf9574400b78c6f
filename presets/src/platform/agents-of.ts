import { loopSettings } from "@portico/adapters/agent-engines/loop-options";
import { agentDocuments } from "@portico/adapters/stores/agent-documents";
import { type Adapter, optionsOf } from "@portico/core";
import {
  backgroundRetriesSettings,
  backgroundTurnsSettings,
  limitsSettings,
  turnsSettings,
} from "@portico/plugins/conversations-runs/config";
import type { PlatformSettings } from "../settings/platform.ts";
import { agentsAt } from "../settings/documents-place.ts";

/** The agents of the settings, and what executes their turns. */
export function agentsOf(agent: PlatformSettings["agent"]): readonly Adapter[] {
  return agentDocuments(agentsAt(agent), optionsOf(loopSettings, agent));
}

/** Options of the agents' turns. */
export function turnsOf({ agent, ...settings }: PlatformSettings) {
  return {
    ...optionsOf(limitsSettings, settings),
    ...optionsOf(turnsSettings, agent),
    background: { ...optionsOf(backgroundRetriesSettings, agent), ...optionsOf(backgroundTurnsSettings, agent.webhooks) },
  };
}
