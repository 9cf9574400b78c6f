/** The provider answered that it will not: its own words, without its credential and address. */
export class ModelRefused extends Error {
  override readonly name = "ModelRefused";
  readonly status: number | undefined;
  /** Whether the same request may be answered a little later. */
  readonly isPassing: boolean;
  /** Milliseconds that the provider asks to be left alone for. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    facts: { readonly status?: number | undefined; readonly isPassing: boolean; readonly retryAfterMs?: number | undefined },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.status = facts.status;
    this.isPassing = facts.isPassing;
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/**
 * Whether the conversation is longer than the model takes. Providers say it in words of their own; an error that a step remembered has
 * only its name and its message.
 */
export function isTooLong(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "ModelRefused") return false;
  return (
    /with status (?:400|413)\b/.test(error.message) && /context|too long|too many tokens|maximum.*tokens/i.test(error.message)
  );
}
