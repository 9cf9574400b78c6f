import { join } from "node:path";
import { defineConfig } from "rolldown";

/**
 * Node.js only strips types. The decorators of tsyringe need a compiler. Rolldown compiles them, because `tsconfig.json` sets
 * `experimentalDecorators`. It does not bundle packages.
 */
export default defineConfig({
  input: join(import.meta.dirname, "main.ts"),
  platform: "node",
  external: [/^@portico\//, "reflect-metadata", "tsyringe", "valibot"],
  output: { file: join(import.meta.dirname, "dist/main.js") },
});
