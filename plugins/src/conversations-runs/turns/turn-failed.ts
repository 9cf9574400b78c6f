/** A turn that cannot go on, in words for the user. */
export class TurnFailed extends Error {
  override readonly name = "TurnFailed";
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The reason with which a turn's signal aborts when a user stops it. */
export class TurnStopped extends Error {
  override readonly name = "TurnStopped";
  readonly reason: string;

  constructor(reason: string) {
    super("The turn was stopped");
    this.reason = reason;
  }
}

/** Why this area interrupts turns (specification 2.11: each has its own identifier). Code that stops a background turn gives its own reason. */
export type StopReason =
  /** A caller stopped it. */
  | "user_stop"
  /** The caller of an asked turn, such as one of an agent as a model, has left. */
  | "caller_left"
  /** Its conversation was cleared. */
  | "conversation_cleared"
  /** The service was stopped, and its grace period ended. */
  | "system_suspension"
  /** A background turn took too long (`agent.webhooks.timeoutMs`). */
  | "background_timeout"
  /** A limit of usage was reached. */
  | "limit_reached"
  /** It executed for longer than `turnSeconds`. */
  | "time_limit";
