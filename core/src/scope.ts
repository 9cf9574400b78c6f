/** What adapters and plugins tidy up with: one mechanism for both. */
export interface Scope {
  /** Undo something when the app closes. Runs last in, first out, also when a later part of the start fails. */
  onClose(undo: () => unknown): void;
  /**
   * Run when every adapter is open and every plugin set up, in the order of the calls: for what needs all of them, such as taking up work
   * whose kinds they define. The app has not started before these have ended, and what one of them throws fails the start.
   */
  onReady(run: () => unknown): void;
}

/** What plugins get: the same, and which plugins there are. */
export interface PluginScope extends Scope {
  /** Names of all plugins of the app, in the order in which they are set up: for what tells its callers what there is. */
  readonly plugins: readonly string[];
}
