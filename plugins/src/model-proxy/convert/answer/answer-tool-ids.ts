/**
 * The ids of an answer's tool calls where the upstream gave none or one twice: made from the answer's own id, so that no two
 * calls of a conversation share one, and the same answer always gets the same.
 */
export class AnswerToolIds {
  readonly #answerId: string;
  readonly #given = new Set<string>();

  constructor(answerId: string) {
    this.#answerId = answerId;
  }

  /** The id of the next call, whose number is `call` and whose upstream said `id`, possibly "". */
  next(call: number, id: string): string {
    const unique = id === "" || this.#given.has(id) ? `call_${this.#answerId}_${call}` : id;
    this.#given.add(unique);
    return unique;
  }
}
