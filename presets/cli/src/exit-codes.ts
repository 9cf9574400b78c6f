/** The exit codes of the process. Codes from 64 on follow the table of `sysexits.h`. Documented in docs/operations.md. */
export const EXIT = {
  ok: 0,
  /** The command worked, but its result is negative: `doctor` found a problem, or a token does not exist. */
  failed: 1,
  /** The followed run ended with another status than completed. */
  notCompleted: 2,
  /** The command line is invalid. */
  usage: 64,
  /** A file that the command line names cannot be read, or is an archive that is refused. */
  noInput: 66,
  /** Something outside is not available: a port is in use, the store cannot be opened, or Node.js is too old. */
  unavailable: 69,
  /** A defect: an unexpected error. */
  internal: 70,
  /** The data directory, the folder of a new package or an archive cannot be created or written, or exists already. */
  cannotCreate: 73,
  /** Another process uses the same data directory. Trying again later may help. */
  inUse: 75,
  /** The configuration is invalid, or a newer version wrote a store. Starting again does not help. */
  config: 78,
  /** Following was stopped with Ctrl-C. Shells use the same code for a process that SIGINT ended. */
  stopped: 130,
} as const;

/** Ends a command with a sentence for a person and an exit code. Its message contains no secret. */
export class CommandFailed extends Error {
  override readonly name = "CommandFailed";
  readonly exitCode: number;

  constructor(message: string, exitCode: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exitCode;
  }
}
