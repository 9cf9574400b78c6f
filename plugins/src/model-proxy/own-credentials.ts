import type { Secret } from "@portico/core";

/** Finds Portico's credentials in what a caller sent. */
export interface OwnCredentials {
  /** Whether a header's or a parameter's value contains one. */
  isIn(value: string): boolean;
}

/** How safe tokens, webhook secrets and execution grants begin. Those of another instance are secrets of its owner, too. */
const MARKED = /service_|(?:^|[^A-Za-z0-9_-])(?:whs_|grant_)/;

/** A shorter token can be part of an honest value by chance: it counts only as a word of its own. */
const SHORTEST_PART = 16;

/**
 * Credentials by their prefix, and `tokens`, which a setting may spell in any way. Values are searched, not compared in constant time: this
 * only decides about outgoing data, and authenticates no caller.
 */
export function createOwnCredentials(tokens: readonly Secret[]): OwnCredentials {
  const values = [...new Set(tokens.map((token) => token.reveal()))];
  const shortest = Math.min(...values.map(({ length }) => length));
  const holds = (value: string) => (token: string) =>
    token.length < SHORTEST_PART ? isWordOf(value, token) : value.includes(token);
  return {
    // Most values have no underscore and are shorter than a token: this runs for each header of each call.
    isIn: (value) => (value.includes("_") && MARKED.test(value)) || (value.length >= shortest && values.some(holds(value))),
  };
}

function isWordOf(value: string, token: string): boolean {
  return value === token || value.split(/[\s,;="]+/).includes(token);
}
