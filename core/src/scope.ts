/** What adapters and plugins tidy up with: one mechanism for both. */
export interface Scope {
  /** Undo something when the app closes. Runs last in, first out, also when a later part of the start fails. */
  onClose(undo: () => unknown): void;
}
