import type { Envelope } from "@portico/core/contract";

/** The code is in `error` (specification 7.5). `details` contains what a caller can correct. */
export const fileEnvelope: Envelope = ({ code, details }) => ({
  error: code,
  ...(Object.keys(details).length > 0 && { details }),
});
