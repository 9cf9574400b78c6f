import type { Envelope } from "@portico/core/contract";

/** `error` has the specified message (7.2). The code is for programs, and `details` has the problems of fields. */
export const workflowEnvelope: Envelope = ({ code, message, details }) => ({
  error: message,
  code,
  ...(Object.keys(details).length > 0 && { details }),
});
