import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fillPlatform } from "../../fixtures/fill-platform.ts";
import { DATA_FOLDER, fixtureEnvironment, writePlatformFolder } from "../../fixtures/platform-folder.ts";
import { jsonCaller } from "../../fixtures/platform-caller.ts";
import { readAnswers } from "../../fixtures/read-answers.ts";
import { openCommand, startPortico } from "../../harness/portico-process.ts";
import { findRuntime, type RuntimeName } from "../../harness/runtimes.ts";

describe.concurrent.each<RuntimeName>(["deno", "bun"])("portico start local, on %s", (name) => {
  const runtime = findRuntime(name);

  it.skipIf(!runtime)("serves all areas, refuses a second process, and a second start has what the first one kept", async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), "portico-test-"));
    writePlatformFolder(folder.path);
    const data = join(folder.path, DATA_FOLDER);
    const options = { cwd: folder.path, env: fixtureEnvironment, runtime };
    const command = (...args: string[]) => openCommand(args, options).ended;

    await using first = await startPortico(options);
    const filled = await fillPlatform(first, data);
    // More bytes than one chunk of the network.
    const webhook = { promptTemplate: "é".repeat(32_768), toolIds: [], maxTurns: 1 };
    await jsonCaller(first, data).agent("PUT", "/api/agents/helper/webhooks/events/long", webhook);
    const answers = await readAnswers(first, data, filled);

    const [second, doctor] = await Promise.all([command("start", "--json"), command("doctor")]);
    expect(second).toMatchObject({ code: 75, stderr: expect.stringContaining(`in use by the running process ${first.pid}`) });
    expect(doctor).toMatchObject({ code: 0, stdout: expect.stringContaining("running on this data directory") });
    expect(await first.stop()).toBe(0);

    await using again = await startPortico(options);
    expect(await readAnswers(again, data, filled)).toEqual(answers);
    expect(await again.stop()).toBe(0);
  });
});
