/** The most that a command may print. A token has some thousand characters. */
const OUTPUT_BYTES = 64 * 1024;

/** Why a command gave no output. `reason` names no argument and no output. */
export class CommandFailed extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super("A command failed");
    this.reason = reason;
  }
}

/**
 * Runs a program without a shell and returns what it printed. It has the environment of this process, no input, and its error output is
 * dropped. When `signal` aborts, the program and all that it started are killed. Throws CommandFailed.
 */
export async function runTokenCommand(command: readonly string[], signal: AbortSignal): Promise<string> {
  // Loaded here: runtimes without processes serve all other credentials.
  const { spawn } = await import("node:child_process");
  const [program = "", ...given] = command;
  if (signal.aborted) throw new CommandFailed("it was stopped");
  return new Promise((resolve, reject) => {
    // In a group of its own, so that programs that it starts can be killed with it.
    const child = spawn(program, given, {
      stdio: ["ignore", "pipe", "ignore"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    const chunks: Buffer[] = [];
    let size = 0;
    const kill = () => {
      try {
        if (process.platform === "win32" || child.pid === undefined) child.kill("SIGKILL");
        else process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended.
      }
      child.stdout.destroy();
    };
    const settle = () => signal.removeEventListener("abort", stop);
    const fail = (reason: string) => {
      settle();
      reject(new CommandFailed(reason));
    };
    const stop = () => {
      kill();
      fail("it was stopped");
    };
    signal.addEventListener("abort", stop, { once: true });
    child.on("error", (error: NodeJS.ErrnoException) => fail(`it could not be started (${error.code ?? "unknown"})`));
    child.stdout.on("error", () => {});
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= OUTPUT_BYTES) return void chunks.push(chunk);
      kill();
      fail(`it printed more than ${OUTPUT_BYTES / 1024} KiB`);
    });
    child.on("close", (code, killedBy) => {
      if (code !== 0) return fail(code === null ? `it was ended by ${killedBy}` : `it ended with exit code ${code}`);
      settle();
      resolve(Buffer.concat(chunks).toString("utf8"));
    });
  });
}
