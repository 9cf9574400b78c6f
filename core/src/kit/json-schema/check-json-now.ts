import { createContext, Script } from "node:vm";
import { type CheckJob, type CheckResult, checkJson } from "./check-json.ts";

const around = createContext({ check: undefined as (() => CheckResult) | undefined });
const call = new Script("check()");

/**
 * Checks a value on the event loop, for callers that cannot wait, such as the reading of a definition. Undefined if the check takes more than
 * `ms` of processor time. Only the timeout of `node:vm` can stop synchronous code. It measures elapsed time, so a process that was suspended or
 * has little processor time gets more time.
 */
export function checkJsonNow(job: CheckJob, ms: number): CheckResult | undefined {
  for (let timeout = Math.max(1, Math.round(ms)); ; timeout *= 2) {
    const before = processorMs();
    around["check"] = () => checkJson(job);
    try {
      return call.runInContext(around, { timeout }) as CheckResult;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      // The timer may fire slightly too early.
      if (processorMs() - before >= ms * 0.9) return undefined;
    } finally {
      around["check"] = undefined;
    }
  }
}

/** Processor time of this thread. Before Node.js 23.9 it is that of the process, which is larger, so no check takes longer than the limit. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
}
