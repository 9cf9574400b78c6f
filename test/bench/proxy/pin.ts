import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

/**
 * Pins processes with all their threads to one core: contestants to the first, the load generator and the upstream to the second. On shared
 * cores the load generator hides what a server costs. Does nothing with one core or without `taskset`.
 */
export function pin(side: "contestant" | "load", ...pids: readonly number[]): void {
  if (!canPin) return;
  for (const pid of pids) taskset(side === "contestant" ? "0" : "1", pid);
}

export const canPin = availableParallelism() > 1 && isThere();

function isThere(): boolean {
  try {
    execFileSync("taskset", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function taskset(core: string, pid: number): void {
  execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", core, String(pid)], { stdio: "ignore" });
}
