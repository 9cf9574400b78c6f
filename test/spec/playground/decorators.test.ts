import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { root } from "../../rooms/repository.ts";

const run = promisify(execFile);
const STORY = resolve(root, "playground/decorators");

/** As the page says it: compiled, because Node.js does not run decorators, and then run. `npm run types` checks its types. */
describe("playground/decorators", () => {
  afterAll(() => rmSync(`${STORY}/dist`, { recursive: true, force: true }));

  it("injects the app's ports into classes of the host, and runs", async () => {
    const rolldown = resolve(root, "node_modules/.bin/rolldown");
    await run(process.execPath, [rolldown, "-c", `${STORY}/rolldown.config.ts`], { cwd: root });
    const { stdout, stderr } = await run(process.execPath, [`${STORY}/dist/main.js`], { cwd: root });
    expect({ stdout, stderr }).toEqual({ stdout: "sold: tea\nin the app's store: tea\n", stderr: "" });
  });
});
