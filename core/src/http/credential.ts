import type { Caller, Identity } from "../ports/identity.ts";
import type { RequestHead } from "../route.ts";

/** The token of an `Authorization: Bearer` header (RFC 6750), or undefined where there is none. */
export function bearerToken(head: RequestHead): string | undefined {
  const value = head.header("authorization");
  if (value === undefined) return undefined;
  const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(value);
  return match?.[1];
}

/**
 * Whoever holds the token of an `X-Agent-Service-Token` header, the credential of the agent service's instance; undefined where there is
 * none, or nobody holds it. Rejects with what `identity` fails with.
 */
export async function callerOf(head: RequestHead, identity: Identity, signal: AbortSignal): Promise<Caller | undefined> {
  const token = head.header("x-agent-service-token");
  return token ? identity.resolve(token, signal) : undefined;
}
