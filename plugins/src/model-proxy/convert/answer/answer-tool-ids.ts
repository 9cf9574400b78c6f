/**
 * Creates ids for tool calls if the upstream gave no id, or gave one id twice. They are derived from the answer's id. So they are unique in
 * a conversation, and the same answer always gets the same ids.
 */
export class AnswerToolIds {
  readonly #answerId: string;
  readonly #given = new Set<string>();

  constructor(answerId: string) {
    this.#answerId = answerId;
  }

  /** The id of the next call. `call` is its number; `id` is the upstream's id, or "". */
  next(call: number, id: string): string {
    const unique = id === "" || this.#given.has(id) ? `call_${this.#answerId}_${call}` : id;
    this.#given.add(unique);
    return unique;
  }
}
