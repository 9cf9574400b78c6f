import type { Caller } from "./ports/identity.ts";

/**
 * When a credential ends at the latest that a caller issues now, in milliseconds since 1970: `mostMs` after now if the caller's own token ends
 * by itself, as a session does. Undefined: there is no such end, also without `mostMs`.
 */
export function latestEnd(
  { expiresAt }: Pick<Caller, "expiresAt">,
  { now, mostMs }: { readonly now: number; readonly mostMs: number | undefined },
): number | undefined {
  return expiresAt === undefined || mostMs === undefined ? undefined : Math.floor(now + mostMs);
}
