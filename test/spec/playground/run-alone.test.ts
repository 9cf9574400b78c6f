import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root } from "../../rooms/repository.ts";

/** What each story prints when it runs alone. */
const stories: Readonly<Record<string, string>> = {
  "third-party-plugin": "written: first\nlisted: first\nThe call failed: note_exists (409)\n",
  "own-adapter": "memory offers: remember, recall\n[ { type: 'text', text: 'No milk.' } ]\n",
  "own-agent-engine":
    "clerk: Tell me to run a tool.\nclerk: 42\nclerk: The arguments do not fit the tool's schema: (arguments) must have required property 'b'\n",
  "own-preset": 'proxy: 200\nnotebook: {"status":"ready"}\n',
  ...Object.fromEntries(
    ["embed-express", "embed-fetch", "embed-h3", "embed-hono"].map((name) => [
      name,
      'host: a page of the host\'s own\nmodel: You said: Hello (This is the offline demo model.)\nnotebook: {"notes":[]}\n',
    ]),
  ),
};

it.each(Object.entries(stories))("playground/%s.ts runs alone, says what it did, and ends", async (name, printed) => {
  const run = await promisify(execFile)(process.execPath, [resolve(root, `playground/${name}.ts`)], {
    env: { PATH: process.env["PATH"] },
  });
  expect(run).toEqual({ stdout: printed, stderr: "" });
});

it("every story is run: what else lies in the playground is what stories share", () => {
  const files = readdirSync(resolve(root, "playground")).filter((file) => file.endsWith(".ts"));
  const shared = ["desk.ts", "embedding-story.ts", "listen.ts", "trigger-agent.ts"];
  expect(files.sort()).toEqual([...Object.keys(stories).map((name) => `${name}.ts`), ...shared].sort());
});
