import { defineConfig } from "vitest/config";

export default defineConfig({
  root: import.meta.dirname,
  test: {
    include: ["{conformance,spec,rooms,chaos}/**/*.test.ts"],
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
