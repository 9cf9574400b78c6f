import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** What became of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a process of the room is asked to run. */
export interface RoomCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const idle: ChildProcess[] = [];

/**
 * Run one command of `portico` in a process that runs others before and after it: most of what a command takes is to load it. For tests that
 * are about what a command does, and not about its process.
 */
export async function runInRoom(command: RoomCommand): Promise<CommandResult> {
  const child = idle.pop() ?? enter();
  child.ref();
  child.channel?.ref();
  const over = new AbortController();
  const { signal } = over;
  try {
    child.send(command);
    const gone = once(child, "exit", { signal }).then(([code]) => {
      throw new Error(`The process of the command ended with ${code}`);
    });
    const [result] = await Promise.race([once(child, "message", { signal }) as Promise<[CommandResult]>, gone]);
    idle.push(child);
    return result;
  } finally {
    over.abort();
    child.unref();
    child.channel?.unref();
  }
}

function enter(): ChildProcess {
  // It ends with this process, whose channel it listens to.
  return fork(join(import.meta.dirname, "command-room-child.ts"), [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
}
