import type { Envelope } from "@portico/core/contract";

/** What went wrong in `error`, its code beside it, and what a client needs to decide on a replay: `busy`, `retryable` (7.6). */
export const agentEnvelope: Envelope = (error) => ({ error: error.message, code: error.code, ...error.details });
