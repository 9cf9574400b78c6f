import { describe, vi } from "vitest";

/** A limit only for what hangs. The usual limits of vitest, 5 s for a test and 10 s for a hook, end tests of a slow store or machine. */
const SUITE_MS = 60_000;

/** A suite with its own timeouts, for its tests and hooks. They also hold for tests that its file declares after it. */
export function describeSuite(name: string, declare: () => void): void {
  describe(name, () => {
    vi.setConfig({ testTimeout: SUITE_MS, hookTimeout: SUITE_MS });
    declare();
  });
}
