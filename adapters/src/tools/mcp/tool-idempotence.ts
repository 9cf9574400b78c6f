/**
 * Whether a tool may be called again, by its annotations: `idempotentHint`, or `readOnlyHint`, since what only reads changes nothing. Any
 * server is believed here: what it calls twice is its own.
 */
export function isIdempotent(annotations: unknown): boolean {
  const { idempotentHint, readOnlyHint } = (annotations ?? {}) as { idempotentHint?: unknown; readOnlyHint?: unknown };
  return idempotentHint === true || readOnlyHint === true;
}
