/** The ID of accepted work is known. Thrown inside a commit, so that the records of the start are not written. */
export class DuplicateWork extends Error {
  override readonly name = "DuplicateWork";
}
