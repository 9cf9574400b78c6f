import { managementErrors } from "../errors.ts";
import { WebhookConfigurationChanged, WebhookConfigurationInvalid } from "../webhook-document.ts";

/** What a caller is told of an error of the configuration's document; any other error as it is. */
export function toConfigurationError(error: unknown): unknown {
  if (error instanceof WebhookConfigurationChanged) return managementErrors.webhook_configuration_changed(undefined, {}, error);
  if (error instanceof WebhookConfigurationInvalid) return managementErrors.webhook_configuration_invalid(undefined, {}, error);
  return error;
}
