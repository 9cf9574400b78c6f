import type { SecurityScheme } from "../derive/security-schemes.ts";
import { type Caller, identity, type Identity } from "../ports/identity.ts";
import type { Guard, RequestHead } from "./contract.ts";
import { accessErrors, type ErrorMaker } from "./error.ts";
import type { Given, Needs } from "./port.ts";

/** The token of an `Authorization: Bearer` header (RFC 6750), or undefined without one. */
export function bearerToken(head: RequestHead): string | undefined {
  const value = head.header("authorization");
  if (value === undefined) return undefined;
  const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(value);
  return match?.[1];
}

/** How the credential of the agent service is presented, for documents. */
export const instanceScheme: SecurityScheme = {
  type: "apiKey",
  in: "header",
  name: "X-Agent-Service-Token",
  description: "A token of the agent service",
};

/** The same for routes that accept only an owner's token. */
export const ownerScheme: SecurityScheme = { ...instanceScheme, description: "An owner's token of the agent service" };

/**
 * The caller whose token is in the `X-Agent-Service-Token` header, the credential of the agent service's instance. Undefined if
 * the header is missing or the token is unknown. Rejects with the errors of `identity`.
 */
async function callerOf(head: RequestHead, identity: Identity, signal: AbortSignal): Promise<Caller | undefined> {
  const token = head.header("x-agent-service-token");
  return token ? identity.resolve(token, signal) : undefined;
}

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

/** Admits callers with a token of the port `identity`, of any role. Others get the area's error. */
export function callerGuard(callers: Identity, errors: { readonly unauthorized: ErrorMaker }): Guard<Promise<Caller>> {
  return async (head, signal) => {
    const caller = await callerOf(head, callers, signal);
    if (!caller) throw errors.unauthorized();
    return caller;
  };
}

/** Admits owners. Others get the area's errors. */
export function ownerGuard(
  callers: Identity,
  errors: { readonly unauthorized: ErrorMaker; readonly owner_required: ErrorMaker },
): Guard<Promise<Caller>> {
  const admit = callerGuard(callers, errors);
  return async (head, signal) => {
    const caller = await admit(head, signal);
    if (caller.role !== "owner") throw errors.owner_required();
    return caller;
  };
}

/** Callers with a token of the port `identity`, of any role, in the header `X-Agent-Service-Token`. */
export const instanceAccess: Access<{ readonly identity: typeof identity }> = defineAccess({
  auth: "instance",
  needs: { identity },
  guard: (given) => callerGuard(given.identity, accessErrors),
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
