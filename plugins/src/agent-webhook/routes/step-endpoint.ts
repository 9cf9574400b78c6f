import { advanceEndpoint, type EndpointEvent, endpointState } from "../endpoint-state.ts";
import { managementErrors } from "../errors.ts";
import type { WebhookConfiguration } from "../webhook-configuration.ts";
import type { WebhookChange } from "../webhook-document.ts";
import { toConfigurationError } from "./configuration-error.ts";
import type { WebhookServices } from "./webhook-services.ts";

/** What is asked of an endpoint, and what changes in its configuration with it. */
export interface EndpointStep {
  readonly event: EndpointEvent;
  readonly change?: WebhookChange;
}

/**
 * One step of the endpoint (specification 3.1): writes down what it is then. `asks` says what is asked for, seeing the configuration. Throws the
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
