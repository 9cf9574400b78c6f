import { appendFileSync } from "node:fs";
import type { Reporter, TestCase } from "vitest/node";

/** Writes the tests that passed only when they were repeated to the file that `PORTICO_REPEATED_TESTS` names, a line each. */
export function repeatedTests(file: string): Reporter {
  return {
    onTestCaseResult(test: TestCase) {
      const { state, errors } = test.result();
      if (!test.diagnostic()?.retryCount || state !== "passed") return;
      const { message = "" } = errors?.[0] ?? {};
      const [cause] = message.split("\n");
      appendFileSync(file, `${test.module.relativeModuleId}: ${test.fullName} (${cause!.slice(0, 200)})\n`);
    },
  };
}
