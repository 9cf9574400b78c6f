/** A list of a server. It is read when it is first needed, and again after the server reported a change. Concurrent callers share one reading. */
export class FreshList<T> {
  readonly #read: () => Promise<T>;
  #list: Promise<T> | undefined;
  #isReading = false;
  #isStale = true;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  now(): Promise<T> {
    if (!this.#list || (this.#isStale && !this.#isReading)) this.#list = this.#readAgain();
    return this.#list;
  }

  /** What was read so far no longer counts. */
  changed(): void {
    this.#isStale = true;
  }

  async #readAgain(): Promise<T> {
    this.#isReading = true;
    this.#isStale = false;
    try {
      return await this.#read();
    } catch (error) {
      this.#isStale = true;
      throw error;
    } finally {
      this.#isReading = false;
    }
  }
}
