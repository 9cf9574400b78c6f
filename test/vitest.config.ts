import { defineConfig } from "vitest/config";

export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ["{conformance,spec,rooms,chaos}/**/*.test.ts"],
    // Vitest leaves a core to itself where there are few; most of our tests wait for processes and disks.
    maxWorkers: "100%",
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
