/** Names that one finding lists. Memory and output must not grow with the damage. */
export const LISTED = 1000;

/** Counts names, and keeps the first of them. */
export class NamedItems {
  readonly names: string[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(name: string): void {
    this.#count++;
    if (this.names.length < LISTED) this.names.push(name);
  }
}
