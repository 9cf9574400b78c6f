import type { SecurityScheme } from "../derive/security-schemes.ts";
import type { Caller, Identity } from "../ports/identity.ts";
import type { RequestHead } from "../route.ts";

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
export async function callerOf(head: RequestHead, identity: Identity, signal: AbortSignal): Promise<Caller | undefined> {
  const token = head.header("x-agent-service-token");
  return token ? identity.resolve(token, signal) : undefined;
}
