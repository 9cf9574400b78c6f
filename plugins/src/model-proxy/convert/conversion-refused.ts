import type { JsonObject } from "./json.ts";

/** The request cannot be converted without changing its meaning. The caller gets 400, and the error names the field. */
export class ConversionRefused extends Error {
  override readonly name = "ConversionRefused";
  /** Path of the field in the caller's own body, for example `messages.2.content.0`. */
  readonly field: string;
  /** A code that the caller's client library knows. With it, the library retries in another form. */
  readonly details: JsonObject | undefined;

  constructor(field: string, reason: string, details?: JsonObject) {
    super(`${field}: ${reason}`);
    this.field = field;
    this.details = details;
  }
}
