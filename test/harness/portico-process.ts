import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beginInRoom, type CommandResult, runInRoom } from "./command-room.ts";
import { compileCache } from "./compile-cache.ts";
import { chosenRuntime, type Runtime } from "./runtimes.ts";

/** After a test, the service's remaining work is not awaited. */
const PATIENCE_MS = 300;
const LAUNCHER = join(import.meta.dirname, "../../presets/cli/portico.mjs");

export interface CommandOptions {
  /** Working directory; default: a new folder that is removed at the end. */
  readonly cwd?: string;
  /** Added to an environment of PATH and HOME alone, in which no provider is looked for. */
  readonly env?: Readonly<Record<string, string>>;
  /** JavaScript that runs before the command, in its process. */
  readonly before?: string;
  /** A program that starts its own preset, instead of `portico start`. */
  readonly program?: string | undefined;
  /** Runs the command instead of this Node.js. Default: `chosenRuntime`, unless there is a `before`, which only Node.js runs. */
  readonly runtime?: Runtime | undefined;
  /** How many files and sockets it may have open; default: as many as this process. */
  readonly openFiles?: number;
  /** Its standard input; empty by default. */
  readonly input?: string;
}

/** A command that runs until it ends by itself or is ended. */
export interface RunningCommand extends AsyncDisposable {
  readonly stdout: () => string;
  readonly stderr: () => string;
  signal(signal: NodeJS.Signals): void;
  readonly ended: Promise<CommandResult>;
}

/** The one line of `portico start --json`. */
export interface ReadyLine {
  readonly event: "ready";
  readonly pid: number;
  readonly listeners: Readonly<Record<string, { readonly url: string }>>;
}

/** A running `portico start`, in a process of its own. */
export interface PorticoProcess extends AsyncDisposable {
  readonly pid: number;
  readonly ready: ReadyLine;
  readonly cwd: string;
  readonly dataDir: string;
  /** URL of one listener. */
  url(surface: string): string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The text of a file in the data directory. */
  read(name: string): string;
  /** Another command with the same folder and environment. */
  run(...args: string[]): Promise<CommandResult>;
  /** A safe token of a provider. */
  token(providerId: string): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>;
}

export interface StartOptions extends CommandOptions {
  /** After `start --json`. */
  readonly args?: readonly string[];
  /** Written to `portico.config.json`. */
  readonly config?: unknown;
  /**
   * For a test that is about the process. Any other test starts in one that runs other commands before and after it, unless an option is about
   * the process.
   */
  readonly hasOwnProcess?: boolean;
}

/** A folder of its own for one test; `remove` it at the end. */
export function temporaryFolder(): { readonly path: string; readonly remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "portico-test-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Run one command to its end. */
export async function runPortico(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const folder = options.cwd === undefined ? temporaryFolder() : undefined;
  try {
    return await openCommand(args, { ...options, cwd: options.cwd ?? folder!.path }).ended;
  } finally {
    folder?.remove();
  }
}

/** The same, for a test that does not control the process, which runs other commands before and after this one. */
export async function runCommand(
  args: readonly string[],
  { cwd, env }: Pick<CommandOptions, "cwd" | "env"> = {},
): Promise<CommandResult> {
  if (chosenRuntime()) return runPortico(args, { ...(cwd !== undefined && { cwd }), ...(env && { env }) });
  const folder = cwd === undefined ? temporaryFolder() : undefined;
  try {
    return await runInRoom({ args, cwd: cwd ?? folder!.path, env: { ...bare(), ...env } });
  } finally {
    folder?.remove();
  }
}

/** Run one command beside what the test does. */
export function openCommand(args: readonly string[], options: CommandOptions & { readonly cwd: string }): RunningCommand {
  const child = launch(args, options);
  const output = collect(child);
  const ended = exitOf(child).then(({ code }) => ({ code, stdout: output.stdout(), stderr: output.stderr() }));
  return {
    ...output,
    signal: (signal) => void child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/**
 * Starts a service and waits until it is ready. Throws its output if it ends before that. Dispose of it at the end: the process is killed
 * and its folder removed.
 */
export async function startPortico(options: StartOptions = {}): Promise<PorticoProcess> {
  const folder = options.cwd === undefined ? temporaryFolder() : undefined;
  const cwd = options.cwd ?? folder!.path;
  const around = { ...options, cwd };
  if (options.config !== undefined)
    writeFileSync(join(cwd, "portico.config.json"), JSON.stringify(options.config), { mode: 0o600 });
  const start = options.program === undefined ? ["start"] : [];
  const { before, openFiles, program, input, runtime = chosenRuntime() } = options;
  const isShared = !options.hasOwnProcess && [before, openFiles, program, input, runtime].every((each) => each === undefined);
  const service = (isShared ? beginShared : beginAlone)([...start, "--json", ...(options.args ?? [])], around);
  const { exited, kill, output } = service;
  const ready = await readyOf(service).catch((error: unknown) => {
    kill("SIGKILL");
    folder?.remove();
    throw error;
  });

  const dataDir = join(cwd, ".portico");
  const run = (...args: string[]) => runCommand(args, around);
  return {
    pid: ready.pid,
    ready,
    cwd,
    dataDir,
    url(surface) {
      const listener = ready.listeners[surface];
      if (!listener) throw new Error(`There is no listener "${surface}"`);
      return listener.url;
    },
    stdout: output.stdout,
    stderr() {
      // A test that found no files there would prove nothing.
      if (isShared) throw new Error("The log of a shared process is not read: start the service with `hasOwnProcess`");
      return output.stderr();
    },
    read: (name) => readFileSync(join(dataDir, name), "utf8"),
    run,
    async token(providerId) {
      const { code, stdout, stderr } = await run("token", "issue", "--provider", providerId);
      if (code !== 0) throw new Error(`token issue ended with ${code}: ${stderr}`);
      return stdout.trim();
    },
    signal: kill,
    exited,
    async stop() {
      kill("SIGTERM");
      return (await exited).code;
    },
    async [Symbol.asyncDispose]() {
      kill(isShared ? "SIGTERM" : "SIGKILL");
      const late = setTimeout(() => kill("SIGKILL"), PATIENCE_MS);
      await exited;
      clearTimeout(late);
      folder?.remove();
    },
  };
}

/** A service that has begun to start. */
interface StartingService {
  readonly output: { readonly stdout: () => string; readonly stderr: () => string };
  readonly exited: PorticoProcess["exited"];
  kill(signal: NodeJS.Signals): void;
  onWritten(told: () => void): void;
}

function beginAlone(args: readonly string[], around: CommandOptions & { readonly cwd: string }): StartingService {
  const child = launch(args, around);
  const output = collect(child);
  return {
    output,
    exited: exitOf(child),
    kill: (signal) => void child.kill(signal),
    onWritten: (told) => void child.stdout?.on("data", told),
  };
}

function beginShared(args: readonly string[], { cwd, env }: CommandOptions & { readonly cwd: string }): StartingService {
  const running = beginInRoom({ args, cwd, env: { ...bare(), ...env } });
  let isOver = false;
  void running.ended.finally(() => (isOver = true)).catch(() => {});
  return {
    output: running,
    exited: running.ended,
    kill(signal) {
      // Its process may run another command by then.
      if (!isOver) running.process.kill(signal);
    },
    onWritten: (told) => (running.onWritten = told),
  };
}

function bare() {
  return { PATH: process.env["PATH"], HOME: process.env["HOME"], NO_COLOR: "1", PORTICO_AUTO_PROVIDERS: "false" };
}

function launch(
  args: readonly string[],
  { cwd, env, before, input, openFiles, program = LAUNCHER, runtime }: CommandOptions & { readonly cwd: string },
): ChildProcess {
  const preload = before === undefined ? [] : ["--import", `data:text/javascript,${encodeURIComponent(before)}`];
  const limit = openFiles === undefined ? [] : ["bash", "-c", `ulimit -n ${openFiles}; exec "$0" "$@"`];
  const chosen = runtime ?? (before === undefined ? chosenRuntime() : undefined);
  const engine = chosen?.command ?? [process.execPath, ...preload];
  const [command = "", ...rest] = [...limit, ...engine, program, ...args];
  // The launcher has a cache of its own.
  const cache = program === LAUNCHER ? {} : compileCache;
  const child = spawn(command, rest, {
    cwd,
    env: { ...bare(), ...cache, ...chosen?.env, ...env },
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  child.stdin?.end(input);
  return child;
}

function collect(child: ChildProcess): { readonly stdout: () => string; readonly stderr: () => string } {
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
    });
  }
  return { stdout: () => written.stdout, stderr: () => written.stderr };
}

/** `close` and not `exit`: only then everything that was written has been read. */
function exitOf(child: ChildProcess): PorticoProcess["exited"] {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
}

function readyOf({ output, exited, onWritten }: StartingService): Promise<ReadyLine> {
  return new Promise((resolve, reject) => {
    onWritten(() => {
      const [line, rest] = output.stdout().split("\n");
      if (rest !== undefined) resolve(JSON.parse(line ?? "") as ReadyLine);
    });
    exited.then(({ code }) => reject(new Error(`portico start ended with ${code}: ${output.stderr()}`)), reject);
  });
}
