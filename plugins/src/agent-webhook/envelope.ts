import type { Envelope } from "@portico/core/contract";

/** The code in `error` (specification 7.3); field failures add `details`. */
export const managementEnvelope: Envelope = ({ code, details }) => ({ error: code, ...someDetails(details) });

/** Words in `error` (specification 7.4). */
export const triggerEnvelope: Envelope = ({ message, details }) => ({ error: message, ...someDetails(details) });

function someDetails(details: Readonly<Record<string, unknown>>): { readonly details?: unknown } {
  return Object.keys(details).length > 0 ? { details } : {};
}
