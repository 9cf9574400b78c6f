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

/**
 * The answer ended without the end marker of its protocol, cannot be read further, or has too many tool calls: none of its tool calls runs (open
 * points 13). Users see the message.
 */
export class AnswerBroken extends Error {
  override readonly name = "AnswerBroken";

  constructor(message = "The model's answer ended before it was complete", options?: ErrorOptions) {
    super(message, options);
  }
}

/**
 * Whether the conversation exceeds the model's context window. Every provider has its own message for this. An error that was
 * restored from a step has only its name and its message.
 */
export function isTooLong(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "ModelRefused") return false;
  if (!/with status (?:400|413)\b/.test(error.message)) return false;
  const text = error.message.toLowerCase();
  const maximum = text.indexOf("maximum");
  return (
    ["context", "too many tokens"].some((words) => text.includes(words)) ||
    // A field, such as an id, may be too long, too: "string too long. Expected a string with maximum length 40".
    text.replaceAll("string too long", "").includes("too long") ||
    (maximum >= 0 && text.includes("tokens", maximum))
  );
}
