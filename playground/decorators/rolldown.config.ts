import { join } from "node:path";
import { defineConfig } from "rolldown";

/**
 * Node.js strips types and nothing else: decorators, as tsyringe has them, need a compiler. This one reads `experimentalDecorators` of
 * `tsconfig.json`. Packages stay as they are.
 */
export default defineConfig({
  input: join(import.meta.dirname, "main.ts"),
  platform: "node",
  external: [/^@portico\//, "reflect-metadata", "tsyringe", "valibot"],
  output: { file: join(import.meta.dirname, "dist/main.js") },
});
