import { managementErrors } from "../errors.ts";
import { WebhookConfigurationChanged, WebhookConfigurationInvalid } from "../webhook-document.ts";

/** Translates errors of the configuration's document into the area's errors. Other errors are returned unchanged. */
export function toConfigurationError(error: unknown): unknown {
  if (error instanceof WebhookConfigurationChanged) return managementErrors.webhook_configuration_changed(undefined, {}, error);
  if (error instanceof WebhookConfigurationInvalid) return managementErrors.webhook_configuration_invalid(undefined, {}, error);
  return error;
}
