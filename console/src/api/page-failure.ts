/** A failure whose message is a sentence for users, to be shown unchanged. Messages of other errors are for developers. */
export class PageFailure extends Error {
  override readonly name = "PageFailure";
}
