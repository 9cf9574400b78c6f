import { CREDENTIAL_PREFIXES, type Live, type ports, type Scope, type Secret } from "@portico/core";
import type { ReadOwnTokens } from "./config.ts";

/** Finds Portico's credentials in a caller's headers and parameters. */
export interface OwnCredentials {
  /** Whether a header's or a parameter's value contains one. */
  isIn(value: string): boolean;
}

const { safeToken, webhookSecret, executionGrant, ...others } = CREDENTIAL_PREFIXES;
/**
 * Credentials by their prefix, also those of another instance. The other prefixes are common words, so at least the characters of a
 * secret or a signature must follow.
 */
const MARKED = new RegExp(
  `${safeToken}|(?:^|[^\\w-])(?:${webhookSecret}|${executionGrant}|(?:${Object.values(others).join("|")})[\\w.-]{43})`,
);

/** Tokens that are searched for at most: the present ones, and those that were replaced last. */
const MOST_TOKENS = 256;

/** A shorter token can occur in another value by chance, so it counts only as a whole word. */
const SHORTEST_PART = 16;

/**
 * Finds credentials by their prefix, and also `tokens`, which have no fixed form because settings define them. The search does not need
 * constant time, because it only filters outgoing data and authenticates no caller.
 */
export function createOwnCredentials(tokens: readonly Secret[]): OwnCredentials {
  const values = [...new Set(tokens.map((token) => token.reveal()))];
  const shortest = Math.min(...values.map(({ length }) => length));
  const holds = (value: string) => (token: string) =>
    token.length < SHORTEST_PART ? isWordOf(value, token) : value.includes(token);
  return {
    // This runs for each header of each call. Most values have no underscore and are shorter than a token.
    isIn: (value) => (value.includes("_") && MARKED.test(value)) || (value.length >= shortest && values.some(holds(value))),
  };
}

/** The same for tokens that may be rotated. Earlier tokens are also found: they may still be valid. */
export async function openOwnCredentials(
  {
    ownTokens,
    ownTokenRotation,
  }: { readonly ownTokens?: ReadOwnTokens | undefined; readonly ownTokenRotation?: Live<ReadOwnTokens> | undefined },
  secrets: ports.Secrets,
  scope: Scope,
): Promise<OwnCredentials> {
  let tokens = (await ownTokens?.(secrets)) ?? [];
  let own = createOwnCredentials(tokens);
  if (ownTokenRotation) {
    scope.onClose(
      ownTokenRotation.follow(async (read) => {
        const next = await read(secrets);
        return () => {
          const isNew = (token: Secret) => !next.some((each) => each.reveal() === token.reveal());
          tokens = [...next, ...tokens.filter(isNew)].slice(0, Math.max(next.length, MOST_TOKENS));
          own = createOwnCredentials(tokens);
        };
      }),
    );
  }
  return { isIn: (value) => own.isIn(value) };
}

function isWordOf(value: string, token: string): boolean {
  return value === token || value.split(/[\s,;="]+/).includes(token);
}
