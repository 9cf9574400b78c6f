import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A process of the benchmark. */
export interface Child {
  readonly pid: number;
  /** The first line of standard output, parsed. */
  readonly ready: unknown;
  stop(): Promise<void>;
}

/**
 * Start a command and wait for the JSON line that says it is ready. Standard error goes to the file descriptor. Throws when it
 * ends before.
 */
export async function startChild(command: string, args: readonly string[], stderr: number, cwd?: string): Promise<Child> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", stderr], cwd });
  endsWithThis(child);
  const lines = createInterface({ input: child.stdout! });
  const first = new Promise<string>((resolve, reject) => {
    lines.once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${args[0] ?? command} ended with code ${code} before it was ready`)));
  });
  return { pid: child.pid!, ready: JSON.parse(await first) as unknown, stop: () => stopChild(child) };
}

/** A process that takes one job after another. */
export interface Worker<Job, Result> {
  readonly pid: number;
  run(job: Job): Promise<Result>;
  /** Ends the job early. Its result is reported as usual. */
  cut(): void;
  stop(): Promise<void>;
}

export function startWorker<Job extends object, Result>(file: URL): Worker<Job, Result> {
  const child = fork(file);
  endsWithThis(child);
  return {
    pid: child.pid!,
    run: (job) =>
      new Promise((resolve, reject) => {
        const onExit = () => reject(new Error("A worker of the benchmark ended early"));
        child.once("exit", onExit);
        child.once("message", (result) => {
          child.off("exit", onExit);
          resolve(result as Result);
        });
        child.send(job);
      }),
    cut: () => void child.send("stop"),
    stop: () => stopChild(child),
  };
}

/** Microseconds of processor time that the threads of a process have used since its start; undefined without `/proc`. */
export function cpuOf(pid: number): number | undefined {
  let nanoseconds = 0;
  for (const thread of threadsOf(pid)) {
    const spent = readProc(pid, `task/${thread}/schedstat`);
    if (spent === undefined) return undefined;
    nanoseconds += Number(spent.split(" ")[0]);
  }
  return nanoseconds === 0 ? undefined : nanoseconds / 1000;
}

/** The peak of the process's resident memory in MiB; undefined without `/proc`. */
export function peakMemoryOf(pid: number): number | undefined {
  const peak = /^VmHWM:\s+(\d+) kB/m.exec(readProc(pid, "status") ?? "");
  return peak ? Number(peak[1]) / 1024 : undefined;
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function readProc(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return undefined;
  }
}

/** Kills the child when this process exits, so that a failed benchmark leaves no process behind. */
export function endsWithThis(child: ChildProcess): void {
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}
