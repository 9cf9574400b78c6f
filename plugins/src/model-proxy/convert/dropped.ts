/** The names that may appear in the response header. Other names could break the header or make it too long. */
const NAMEABLE = /^[a-zA-Z0-9_.$-]{1,128}$/;
const NAMES = 64;
const UNNAMED = "(other)";

/** Collects the names of fields that were left out because dropping them keeps the meaning (header `x-portico-dropped`). */
export class Dropped {
  readonly #fields = new Set<string>();

  /**
   * Callers choose the names of unknown fields. So names that are unsafe in a header, and names beyond the 64th, are reported as
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
