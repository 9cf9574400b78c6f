import type { RequestHead } from "../route.ts";

/** The token of an `Authorization: Bearer` header (RFC 6750), or undefined where there is none. */
export function bearerToken(head: RequestHead): string | undefined {
  const value = head.header("authorization");
  if (value === undefined) return undefined;
  const match = /^Bearer +([\x21-\x7e]+) *$/i.exec(value);
  return match?.[1];
}
