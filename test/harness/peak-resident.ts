import { readFileSync } from "node:fs";

/**
 * The peak of this process's resident memory in bytes. On Linux from the process's own status, because `maxRSS` includes memory of the
 * process that started it.
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
