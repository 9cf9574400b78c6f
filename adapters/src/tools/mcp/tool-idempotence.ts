/**
 * Whether a tool may be called again, by its annotations: `idempotentHint`, or `readOnlyHint`, because reading changes nothing.
 * Every server is trusted here: a repeated call affects only its own tools.
 */
export function isIdempotent(annotations: unknown): boolean {
  const { idempotentHint, readOnlyHint } = (annotations ?? {}) as { idempotentHint?: unknown; readOnlyHint?: unknown };
  return idempotentHint === true || readOnlyHint === true;
}
