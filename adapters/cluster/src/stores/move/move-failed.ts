/** Thrown by `moveStore`. Nothing in the data directory was changed. The message says what to do. */
export class MoveFailed extends Error {
  override readonly name = "MoveFailed";
}
