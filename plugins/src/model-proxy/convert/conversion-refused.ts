import type { JsonObject } from "./json.ts";

/** A request that cannot be said in the other protocol without changing its meaning: answered with 400 that names the field. */
export class ConversionRefused extends Error {
  override readonly name = "ConversionRefused";
  /** Path of the field in the caller's own body, for example `messages.2.content.0`. */
  readonly field: string;
  /** What the caller's client library reads to find another way by itself. */
  readonly details: JsonObject | undefined;

  constructor(field: string, reason: string, details?: JsonObject) {
    super(`${field}: ${reason}`);
    this.field = field;
    this.details = details;
  }
}
