import type { Guard, ports } from "@portico/core";
import { agentErrors } from "./errors.ts";

/** Whoever holds a token of the agent service (specification 5). */
export function instanceGuard(identity: ports.Identity): Guard<Promise<ports.Caller>> {
  return async (head, signal) => {
    const token = head.header("x-agent-service-token");
    const caller = token ? await identity.resolve(token, signal) : undefined;
    if (!caller) throw agentErrors.unauthorized();
    return caller;
  };
}
