import { setTimeout as wait } from "node:timers/promises";
import type { TestProject } from "vitest/node";

/** Time limit of all long forms together, on two cores with other work. */
const WHOLE_MS = 60 * 60_000;
/** Time for running tests to end, so that they end their own processes. */
const GRACE_MS = 60_000;

/** Ends the long tests of durability if they do not end themselves: a global setup of vitest. */
export default function boundWhole({ vitest }: TestProject): () => void {
  const timer = setTimeout(() => void stop(), WHOLE_MS);
  const stop = async (): Promise<void> => {
    console.error(`The long tests did not end within ${WHOLE_MS / 60_000} minutes: they are stopped.`);
    process.exitCode = 1;
    await Promise.race([vitest.cancelCurrentRun("keyboard-input"), wait(GRACE_MS)]);
    await wait(GRACE_MS, undefined, { ref: false });
    process.exit(1);
  };
  return () => clearTimeout(timer);
}
