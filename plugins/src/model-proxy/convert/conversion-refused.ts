/** A request that cannot be said in the other protocol without changing its meaning: answered with 400 that names the field. */
export class ConversionRefused extends Error {
  override readonly name = "ConversionRefused";
  /** Path of the field in the caller's own body, for example `messages.2.content.0`. */
  readonly field: string;

  constructor(field: string, reason: string) {
    super(`${field}: ${reason}`);
    this.field = field;
  }
}
