import { accessErrors } from "./access-errors.ts";
import type { SecurityScheme } from "./derive/security-schemes.ts";
import { bearerToken, callerOf, instanceScheme } from "./http/credential.ts";
import type { Given, Needs } from "./port.ts";
import { identity } from "./ports/identity.ts";
import type { Guard } from "./route.ts";

/**
 * Who may call a plugin that fits on any surface, such as a page of metrics: the scheme's name, its guard, and the guard's needs.
 * The host chooses the access together with the surface.
 */
export interface Access<N extends Needs = any> {
  /** Name of the scheme, as contracts name it. */
  readonly auth: string;
  readonly needs: N;
  readonly guard: (given: Given<N>) => Guard<unknown>;
  /** How callers present the credential, for documents. If there are several descriptions, each of them is sufficient. */
  readonly security?: SecurityScheme | readonly SecurityScheme[];
}

/** Declare an access. */
export function defineAccess<const N extends Needs>(access: Access<N>): Access<N> {
  return access;
}

/** Callers with a token of the port `identity`, of any role, in the header `X-Agent-Service-Token`. */
export const instanceAccess: Access<{ readonly identity: typeof identity }> = defineAccess({
  auth: "instance",
  needs: { identity },
  guard: (given) => async (head, signal) => {
    const caller = await callerOf(head, given.identity, signal);
    if (!caller) throw accessErrors.unauthorized();
    return caller;
  },
  security: instanceScheme,
});

/** As `instanceAccess`. The token may also arrive as `Authorization: Bearer`, which scrapers send. */
export const scraperAccess: Access<{ readonly identity: typeof identity }> = defineAccess({
  auth: "scraper",
  needs: { identity },
  guard(given) {
    const byHeader = instanceAccess.guard(given);
    return async (head, signal) => {
      const bearer = bearerToken(head);
      if (bearer === undefined) return byHeader(head, signal);
      const caller = await given.identity.resolve(bearer, signal);
      if (!caller) throw accessErrors.unauthorized();
      return caller;
    };
  },
  security: [{ type: "http", scheme: "bearer", description: "A token of the agent service" }, instanceScheme],
});

/** Every caller, without a credential: for apps behind another access control. */
export const openAccess: Access<{}> = defineAccess({ auth: "open", needs: {}, guard: () => () => undefined });
