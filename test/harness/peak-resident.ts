import { readFileSync } from "node:fs";

/**
 * The most memory that this process ever had resident, in bytes. On Linux by the process's own account: `maxRSS` begins there with what the process
 * that started it had.
 */
export function peakResident(): number {
  try {
    const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // No Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}
