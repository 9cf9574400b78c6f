// What programs that configure webhooks share with the service. It runs in browsers.
export { editJsonText } from "./edit-json-text.ts";
export {
  EVENT_NAME_LENGTH,
  MAX_TURNS,
  MAX_TURNS_MAXIMUM,
  NOTIFICATION_BYTES,
  PROMPT_CHARACTERS,
  PROMPT_TEMPLATE_LENGTH,
  SENDER_EVENT_LENGTH,
  SENDER_NAME_LENGTH,
  SENDER_SECRET_LENGTH,
  SENDERS,
  TRIGGER_BYTES,
} from "./limits.ts";
export { renderTemplate, templateFields } from "./render-template.ts";
export { isSenderName, makesItsSecret, type SenderKind } from "./senders/sender-rules.ts";
export { isEventName } from "./webhook-configuration.ts";
