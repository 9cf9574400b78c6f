import { callerOf, type Guard, type ports } from "@portico/core";
import { instanceErrors } from "./instance-errors.ts";

/** Lets in whoever has a token of the agent service. */
export function instanceGuard(identity: ports.Identity): Guard<Promise<ports.Caller>> {
  return async (head, signal) => {
    const caller = await callerOf(head, identity, signal);
    if (!caller) throw instanceErrors.unauthorized();
    return caller;
  };
}
