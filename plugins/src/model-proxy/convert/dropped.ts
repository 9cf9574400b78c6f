/** What a caller may name in a response header; anything else could break the header or flood it. */
const NAMEABLE = /^[a-zA-Z0-9_.$-]{1,128}$/;
const NAMES = 64;
const UNNAMED = "(other)";

/** Collects the names of fields that were left out because dropping them keeps the meaning (header `x-portico-dropped`). */
export class Dropped {
  readonly #fields = new Set<string>();

  /**
   * Unknown fields are named by the caller, so a name that no header should carry, and any beyond 64, is counted as
   * `(other)`.
   */
  add(field: string): void {
    this.#fields.add(this.#fields.size < NAMES && NAMEABLE.test(field) ? field : UNNAMED);
  }

  /** In the order of their first mention. */
  get fields(): readonly string[] {
    return [...this.#fields];
  }
}
