import type { ModelError } from "./model-events.ts";

/** An answer that cannot be given to the caller as a whole: it broke, or it holds what the caller's protocol cannot say. */
export class AnswerFailed extends Error {
  override readonly name = "AnswerFailed";
  readonly error: ModelError;

  constructor(error: ModelError) {
    super(error.message);
    this.error = error;
  }
}
