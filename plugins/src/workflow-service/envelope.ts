import type { Envelope } from "@portico/core/contract";

/** Words in `error`, which the specification gives (7.2); the code beside it for programs, and what is wrong with fields in `details`. */
export const workflowEnvelope: Envelope = ({ code, message, details }) => ({
  error: message,
  code,
  ...(Object.keys(details).length > 0 && { details }),
});
