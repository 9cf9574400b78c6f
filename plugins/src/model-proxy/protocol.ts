import type { ports } from "@portico/core";

/** The two wire formats that callers and providers speak (specification 4.1). */
export type Protocol = ports.ModelProtocol;
