import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";

/** The result of a command. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A request to a process of the room. */
export interface RoomCommand {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A message of a process of the room: a piece of the command's output, and finally its exit code. */
export type RoomMessage = { readonly name: "stdout" | "stderr"; readonly text: string } | { readonly code: number };

/** A command in a process of the room. */
export interface CommandInRoom {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The command has this process to itself until it ends. */
  readonly process: ChildProcess;
  /** `signal`: of a process that was killed. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Is called with each piece that it writes. */
  onWritten: () => void;
}

const idle: ChildProcess[] = [];

/**
 * Begins a command of `portico` in a process that also runs other commands, because most of a command's time is for loading it. For tests
 * of what a command does, not of its process. A process that was killed runs no further command.
 */
export function beginInRoom(command: RoomCommand): CommandInRoom {
  const child = idle.pop() ?? enter();
  child.ref();
  child.channel?.ref();
  const written = { stdout: "", stderr: "" };
  const { promise: ended, resolve, reject } = Promise.withResolvers<Awaited<CommandInRoom["ended"]>>();
  const running: CommandInRoom = {
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    process: child,
    ended,
    onWritten: () => {},
  };
  const onMessage = (message: RoomMessage): void => {
    if ("name" in message) {
      written[message.name] += message.text;
      return running.onWritten();
    }
    leave();
    idle.push(child);
    resolve({ code: message.code, signal: null });
  };
  const onExit = (code: number | null, signal: NodeJS.Signals | null): void => {
    leave();
    resolve({ code, signal });
  };
  const onError = (error: Error): void => {
    leave();
    reject(error);
  };
  function leave(): void {
    child.off("message", onMessage).off("exit", onExit).off("error", onError);
    child.unref();
    child.channel?.unref();
  }
  child.on("message", onMessage).on("exit", onExit).on("error", onError);
  child.send(command);
  return running;
}

/** Run one command to its end. Throws when its process ends. */
export async function runInRoom(command: RoomCommand): Promise<CommandResult> {
  const running = beginInRoom(command);
  const { code, signal } = await running.ended;
  if (running.process.exitCode !== null || signal !== null)
    throw new Error(`The process of the command ended with ${signal ?? code}`);
  return { code, stdout: running.stdout(), stderr: running.stderr() };
}

function enter(): ChildProcess {
  // It ends with this process, whose channel it listens to.
  return fork(join(import.meta.dirname, "command-room-child.ts"), [], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
}
