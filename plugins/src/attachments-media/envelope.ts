import type { Envelope } from "@portico/core/contract";

/** The code in `error` (specification 7.5); what a caller can mend stands in `details`. */
export const fileEnvelope: Envelope = ({ code, details }) => ({
  error: code,
  ...(Object.keys(details).length > 0 && { details }),
});
