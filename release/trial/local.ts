// The preset `local` in a process of your own, without `@portico/cluster`, `@portico/workflow-nodes`, `@portico/console`, `@portico/mcp` and the command line.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createApp } from "@portico/core";
import { local, readPlatformOptions } from "@portico/presets/local";

mkdirSync("local-workflows", { recursive: true });
const nodes = "nodes:\n  ask: { type: http, with: { url: https://example.com } }";
writeFileSync("local-workflows/ask.yaml", `id: ask\nname: Ask\n${nodes}\n`);

const token = "a-token-of-this-trial";
const options = await readPlatformOptions({
  dataDir: "local-data",
  autoProviders: false,
  agent: { tokens: [{ token, userId: "ada", role: "owner" }] },
  workflow: { token, definitionsDir: "local-workflows" },
});
const app = await createApp(local(options));
const answered = async (surface: string, path: string) =>
  (await app.surface(surface).fetch(new Request(`http://trial.local${path}`))).status;
assert.equal(await answered("agent", "/healthz"), 200);
assert.equal(await answered("workflow", "/healthz"), 200);
assert.equal(await answered("agent", "/"), 404);
await app.close();

const withConsole = await readPlatformOptions({ agent: { console: true } });
assert.throws(() => local(withConsole), /install @portico\/console/);
for (const area of ["agent", "workflow"]) {
  const withMcp = await readPlatformOptions({ [area]: { mcp: true } });
  assert.throws(() => local(withMcp), { message: `${area}.mcp: install @portico/mcp, or leave this setting out` });
}
console.log("served");
