/** The exit codes of the process. Codes from 64 on follow the table of `sysexits.h`. Documented in docs/reference/exit-codes.md, from these comments. */
export const EXIT = {
  /** The command worked, or the service was stopped. */
  ok: 0,
  /**
   * The command worked, but its result is negative: `doctor` or `workflow check` found a problem, a case of `workflow test` or `agent test`
   * failed, too few cases of `agent eval` passed, no token has this id, or the running service refused.
   */
  failed: 1,
  /** The followed run ended with another status than completed. */
  notCompleted: 2,
  /** The command line is invalid. */
  usage: 64,
  /**
   * A file that the command line names cannot be read; an archive is refused; the data directory to back up or move does not exist.
   */
  noInput: 66,
  /**
   * Something outside of Portico is not available: a port is in use, a store cannot be opened or is sealed under another instance key, the
   * service that a command calls does not answer, or Node.js is too old.
   */
  unavailable: 69,
  /** A defect: an unexpected error. */
  internal: 70,
  /** The data directory, the folder of a new package or an archive cannot be created or written; a file exists; a directory has data. */
  cannotCreate: 73,
  /** Another process uses the same data directory. Trying again later may help. */
  inUse: 75,
  /**
   * The configuration is invalid or does not fit the command, or a store is not of this instance, or a newer version wrote it. Starting again does
   * not help.
   */
  config: 78,
  /** Following was stopped with Ctrl-C, or a second SIGINT ended the process at once. A second SIGTERM gives 143. */
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
