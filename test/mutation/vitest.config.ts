import { join } from "node:path";
import { defineConfig } from "vitest/config";

// `run-mutations.ts` says which tests: those of the group whose files are mutated.
export default defineConfig({
  root: join(import.meta.dirname, ".."),
  test: {
    include: JSON.parse(process.env.PORTICO_MUTATION_TESTS ?? "[]") as string[],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { interval: 20, timeout: 30_000 } },
  },
});
