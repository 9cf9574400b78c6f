import { callerOf, type Guard, type ports } from "@portico/core";
import { agentErrors } from "./errors.ts";

/** Callers with a token of the agent service (specification 5). */
export function instanceGuard(identity: ports.Identity): Guard<Promise<ports.Caller>> {
  return async (head, signal) => {
    const caller = await callerOf(head, identity, signal);
    if (!caller) throw agentErrors.unauthorized();
    return caller;
  };
}
