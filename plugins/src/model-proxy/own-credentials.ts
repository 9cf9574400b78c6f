import type { Secret } from "@portico/core";

/** Finds Portico's credentials in a caller's headers and parameters. */
export interface OwnCredentials {
  /** Whether a header's or a parameter's value contains one. */
  isIn(value: string): boolean;
}

/** The prefixes of safe tokens, webhook secrets and execution grants. Credentials of another instance are also secrets. */
const MARKED = /service_|(?:^|[^A-Za-z0-9_-])(?:whs_|grant_)/;

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

function isWordOf(value: string, token: string): boolean {
  return value === token || value.split(/[\s,;="]+/).includes(token);
}
