import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createManualClock } from "@portico/adapters/clock/manual";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { readSettings } from "../../../presets/cli/src/read-settings.ts";
import { workflowNodes } from "../../../presets/src/platform/workflow-service.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWorkflowService } from "../../harness/workflow-app.ts";

afterEach(() => vi.restoreAllMocks());

const scripts = (source: string) => ({
  nodes: {
    each: {
      type: "map",
      with: {
        items: "[1, 2, 3, 4, 5, 6]",
        concurrency: 6,
        nodes: { run: { type: "code", with: { source, input: "${{ item }}" } } },
        result: "${{ nodes.run.output }}",
      },
    },
  },
  outputs: { all: "${{ nodes.each.output }}" },
});

/** A service with the nodes of a configuration. Its clock never advances: no script becomes slow, so that no further threads start. */
async function start(threads: number) {
  const folder = temporaryFolder();
  onTestFinished(folder.remove);
  const config = join(folder.path, "portico.config.json");
  writeFileSync(config, JSON.stringify({ workflow: { sandbox: { threads } } }));
  const { settings } = await readSettings({ config });
  const sent = vi.spyOn(Worker.prototype, "postMessage");
  const service = await startWorkflowService({
    clock: createManualClock(),
    definitions: { "short.json": scripts("return input"), "endless.json": scripts("for (;;);") },
    // The harness has its own transform node.
    adapters: workflowNodes(settings).filter(({ name }) => !name.endsWith("/transform")),
  });
  /** The threads that got scripts. */
  const used = () => new Set(sent.mock.contexts.filter((_, at) => "source" in (sent.mock.calls[at]![0] as object))).size;
  return { service, used };
}

it("the setting workflow.sandbox.threads is the maximum number of threads for scripts", async () => {
  const { service, used } = await start(1);
  await using _closed = service;
  const run = await service.ended("short", await service.trigger("short"));
  expect([run.finalOutputs, used()]).toEqual([{ all: [1, 2, 3, 4, 5, 6] }, 1]);
});

it("as many threads execute scripts at the same time, whatever the number of processors", async () => {
  const { service, used } = await start(5);
  await using _closed = service;
  await service.trigger("endless");
  await expect.poll(used).toBe(5);
});
