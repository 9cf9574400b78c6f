import { setTimeout as wait } from "node:timers/promises";
import type { TestProject } from "vitest/node";

/** Of all long forms together, on two cores beside other work. */
const WHOLE_MS = 60 * 60_000;
/** For what runs to come to its end, so that its processes are ended by those who began them. */
const GRACE_MS = 60_000;

/** Ends the long tests of durability where they do not end themselves: a global setup of vitest. */
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
