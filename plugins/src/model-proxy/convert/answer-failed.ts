import type { ModelError } from "./model-events.ts";

/** A whole answer that cannot be written: it broke, or the caller's protocol cannot express its content. */
export class AnswerFailed extends Error {
  override readonly name = "AnswerFailed";
  readonly error: ModelError;

  constructor(error: ModelError) {
    super(error.message);
    this.error = error;
  }
}
