import { advanceEndpoint, type EndpointEvent, endpointState } from "../endpoint-state.ts";
import { managementErrors } from "../errors.ts";
import type { WebhookConfiguration } from "../webhook-configuration.ts";
import type { WebhookChange } from "../webhook-document.ts";
import { toConfigurationError } from "./configuration-error.ts";
import type { WebhookServices } from "./webhook-services.ts";

/** An action on an endpoint, and the change of its configuration. */
export interface EndpointStep {
  readonly event: EndpointEvent;
  readonly change?: WebhookChange;
}

/**
 * One step of the endpoint (specification 3.1): stores its new state. `asks` returns the action for the present configuration. Throws the
 * errors of the management.
 */
export async function stepEndpoint(
  { document, secrets }: WebhookServices,
  agentId: string,
  asks: (configuration: WebhookConfiguration) => EndpointStep,
): Promise<{ readonly enabled: boolean; readonly makesSecret: boolean }> {
  let makesSecret = false;
  try {
    const { enabled } = await document.change(agentId, async (configuration) => {
      const { event, change } = asks(configuration);
      const { enabled, events } = configuration;
      const state = endpointState({ enabled, events: events.size, hasSecret: await secrets.has(agentId) });
      const next = advanceEndpoint(state, event);
      if ("refused" in next) throw managementErrors[next.refused]();
      makesSecret = next.makesSecret;
      return { ...change, enabled: next.state.status === "enabled" };
    });
    return { enabled, makesSecret };
  } catch (error) {
    throw toConfigurationError(error);
  }
}
