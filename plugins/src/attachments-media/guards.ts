import { callerGuard, type Guard, type ports } from "@portico/core";
import { fileErrors } from "./errors.ts";

/** A signed link is a credential for reading only. All other methods need the token (specification 4.5, rule 9). */
export function signedReadGuard(identity: ports.Identity): Guard<Promise<undefined>> {
  const asksForToken = callerGuard(identity, fileErrors);
  return async (head, signal) => {
    if (head.method !== "GET" && head.method !== "HEAD") await asksForToken(head, signal);
    return undefined;
  };
}
