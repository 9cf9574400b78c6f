import { CREDENTIAL_PREFIXES } from "./credential-prefixes.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Signing } from "./ports/signing.ts";
import { createSignedTokens, type SignedTokens } from "./signed-tokens.ts";

/** How long a session lasts: one working day. */
const SESSION_MS = 12 * 60 * 60 * 1000;

/**
 * Sessions of the instance's first owner, for a browser that was signed in with a link. The plugin `sign-in` opens them, and
 * `tokenIdentity` accepts them as a token of the agent service. A session is not the instance access token: `isInstanceToken`
 * answers false, so a session can open no other session.
 */
export function createInstanceSessions(given: {
  readonly signing: Signing;
  readonly clock: Clock;
  readonly ids: Ids;
}): SignedTokens {
  return createSignedTokens({ purpose: "instance-session", prefix: CREDENTIAL_PREFIXES.session, lifetimeMs: SESSION_MS }, given);
}
