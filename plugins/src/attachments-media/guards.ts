import { callerOf, type Guard, type ports } from "@portico/core";
import { fileErrors } from "./errors.ts";

/** Callers with a token of the agent service (specification 5). */
export function instanceGuard(identity: ports.Identity): Guard<Promise<ports.Caller>> {
  return async (head, signal) => {
    const caller = await callerOf(head, identity, signal);
    if (!caller) throw fileErrors.unauthorized();
    return caller;
  };
}

/** A signed link is a credential for reading only. All other methods need the token (specification 4.5, rule 9). */
export function signedReadGuard(identity: ports.Identity): Guard<Promise<undefined>> {
  const asksForToken = instanceGuard(identity);
  return async (head, signal) => {
    if (head.method !== "GET" && head.method !== "HEAD") await asksForToken(head, signal);
    return undefined;
  };
}
