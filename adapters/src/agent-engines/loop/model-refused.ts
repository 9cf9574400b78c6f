/** The provider refused the request. Holds the provider's message, without its credential and address. */
export class ModelRefused extends Error {
  override readonly name: string = "ModelRefused";
  readonly status: number | undefined;
  /** Whether the same request can succeed a little later. */
  readonly isPassing: boolean;
  /** Milliseconds that the provider asks callers to wait. */
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

/** The provider reported an overload. */
export class ModelOverloaded extends ModelRefused {
  override readonly name = "ModelOverloaded";
}

/** The answer ended without the end marker of its protocol, or cannot be read further: it is incomplete (open points 13). */
export class AnswerBroken extends Error {
  override readonly name = "AnswerBroken";
}

/**
 * Whether the conversation exceeds the model's context window. Every provider has its own message for this. An error that was
 * restored from a step has only its name and its message.
 */
export function isTooLong(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "ModelRefused") return false;
  return (
    /with status (?:400|413)\b/.test(error.message) && /context|too long|too many tokens|maximum.*tokens/i.test(error.message)
  );
}
