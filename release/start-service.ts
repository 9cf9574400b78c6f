import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A running `portico start --json`. */
export interface RunningService extends AsyncDisposable {
  /** By surface. */
  readonly urls: Readonly<Record<string, string>>;
  /** Sends SIGTERM to the process in the ready line. Returns the exit code of the command; null if a signal ended it. */
  stop(): Promise<number | null>;
}

/** Start a service and wait for its ready line. If it ends before that, throws an error with its output. Disposing kills it. */
export async function startService(command: readonly [string, ...string[]], cwd: string): Promise<RunningService> {
  const [file, ...args] = command;
  const child = spawn(file, args, {
    cwd,
    env: { ...process.env, PORTICO_AUTO_PROVIDERS: "false" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "close") as Promise<[number | null]>;
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const line = await Promise.race([firstLine(child), exited.then(([code]) => `ended with ${code}`)]);
  try {
    const { pid, listeners } = JSON.parse(line) as { pid: number; listeners: Record<string, { url: string }> };
    return {
      urls: Object.fromEntries(Object.entries(listeners).map(([name, { url }]) => [name, url])),
      async stop() {
        process.kill(pid, "SIGTERM");
        return (await exited)[0];
      },
      async [Symbol.asyncDispose]() {
        // The command may be npx, whose grandchild is the service.
        if (child.exitCode === null) process.kill(pid, "SIGKILL");
        await exited;
      },
    };
  } catch (cause) {
    child.kill("SIGKILL");
    throw new Error(`${command.join(" ")} is not ready: ${line}\n${log}`, { cause });
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) return line;
  return new Promise(() => {});
}
