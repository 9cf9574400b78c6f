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
  | "user_stop"
  | "caller_left"
  | "conversation_cleared"
  | "system_suspension"
  | "background_timeout"
  | "limit_reached"
  | "time_limit";
