/** The lifecycle of adapters and plugins: both use the same mechanism. */
export interface Scope {
  /** Undo an effect when the app closes. Runs in reverse order, also when a later part of the start fails. */
  onClose(undo: () => unknown): void;
  /**
   * Run when every adapter is open and every plugin is set up, in the order of the calls. For tasks that need all of them, such
   * as taking over work whose kinds they define. The app has started only after these have ended. If one of them throws, the
   * start fails.
   */
  onReady(run: () => unknown): void;
}
