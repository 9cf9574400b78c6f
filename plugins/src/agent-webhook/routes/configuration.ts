import { endpointState } from "../endpoint-state.ts";
import { toConfigurationError } from "./configuration-error.ts";
import { managedAgent } from "./managed-agent.ts";
import type { WebhookHandlers, WebhookServices } from "./webhook-services.ts";

/** Returns an agent's webhook configuration, and the tools that its events can use. */
export function readConfiguration({ agents, document, secrets, turns }: WebhookServices): WebhookHandlers["configuration"] {
  return async ({ params: { id }, signal }) => {
    await managedAgent(agents, id);
    const [{ enabled, events }, hasSecret, tools] = await Promise.all([
      document.read(id).catch((error: unknown) => Promise.reject(toConfigurationError(error))),
      secrets.has(id),
      turns.tools(signal),
    ]);
    return {
      enabled: endpointState({ enabled, events: events.size, hasSecret }).status === "enabled",
      hasSecret,
      events: [...events].map(([event, { promptTemplate, maxTurns, toolIds }]) => ({
        ...{ event, promptTemplate, maxTurns },
        toolIds: [...toolIds],
      })),
      availableTools: tools.map(({ id, name, riskLevel, requiresConfirmation }) => ({
        ...{ id, name, riskLevel, requiresConfirmation },
      })),
    };
  };
}
