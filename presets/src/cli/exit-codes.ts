/** What the process answers to whoever started it, from 64 on after the table of `sysexits.h`. Documented in docs/operations.md. */
export const EXIT = {
  ok: 0,
  /** A command did its work and the answer is no: `doctor` found something, a token is not there. */
  failed: 1,
  /** The run that was followed has ended, and not as completed. */
  notCompleted: 2,
  /** The command line is not understood. */
  usage: 64,
  /** A file that the command line names cannot be read. */
  noInput: 66,
  /** Something outside is missing: a port is taken, the store cannot be opened, Node.js is too old. */
  unavailable: 69,
  /** A defect: an error that nobody expected. */
  internal: 70,
  /** The data directory, or the folder of a new package, cannot be made or written. */
  cannotCreate: 73,
  /** Another process runs on the same data directory; trying again later may help. */
  inUse: 75,
  /** The configuration is not usable. */
  config: 78,
  /** Following was stopped with Ctrl-C, as shells name a process that a SIGINT ended. */
  stopped: 130,
} as const;

/** Ends a command with a sentence for a person and an exit code. Its message holds no secret. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly exitCode: number;

  constructor(message: string, exitCode: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
