import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { workflowFolder, type WorkflowProcess } from "../harness/workflow-process.ts";

const LIVES = process.env.PORTICO_LONG ? 20 : 3;
const KEYS = 5;

const definition = {
  parameters: { type: "object", properties: { key: { type: "string" }, n: { type: "integer" } } },
  debounce: { delay: "100ms", maxWait: "400ms", key: "${{ parameters.key }}" },
  nodes: { a: { type: "transform", with: { value: "${{ parameters.n }}" } } },
  outputs: { n: "${{ nodes.a.output }}" },
};

it(
  `${LIVES} kills at random instants under triggers that share runs: each run is executed, with the parameters of the last trigger that was answered with it, or of a later one without an answer`,
  async () => {
    using folder = workflowFolder();
    folder.deploy("calm.json", definition);
    /** The last answered number of each run, and the last number that was sent for its key since then. */
    const answered = new Map<string, { readonly key: string; n: number; until: number }>();
    const newest = new Map<string, { n: number; runId: string | undefined }>();
    let service: WorkflowProcess;
    for (let life = 0; ; life++) {
      service = await folder.start("workflow", { hasOwnProcess: true });
      const { trigger } = service;
      const over = new AbortController();
      const send = async (key: string) => {
        while (!over.signal.aborted) {
          const { n = 0, runId: before } = newest.get(key) ?? {};
          // Without an answer, the trigger may belong to the run of the one before it.
          const run = before === undefined ? undefined : answered.get(before);
          if (run) run.until = n + 1;
          newest.set(key, { n: n + 1, runId: before });
          const runId = await trigger("calm", { key, n: n + 1 }).catch(() => undefined);
          if (runId === undefined) return;
          if (run && runId !== before) run.until = n;
          answered.set(runId, { key, n: n + 1, until: n + 1 });
          newest.set(key, { n: n + 1, runId });
          await sleep(Math.random() * 150);
        }
      };
      const sending = Array.from({ length: KEYS }, (_each, at) => send(`key-${at}`));
      await sleep(500 + Math.random() * 700);
      if (life < LIVES) service.signal("SIGKILL");
      over.abort();
      await Promise.all(sending);
      if (life === LIVES) break;
      await service.exited;
    }
    const { call } = service;
    const list = async (): Promise<any[]> => (await call("GET", "/api/workflow/calm/runs")).body.runs;
    await expect.poll(async () => (await list()).every(({ status }) => status === "completed"), { timeout: 60_000 }).toBe(true);
    expect(answered.size).toBeGreaterThan(KEYS);
    for (const [runId, { n, until }] of answered) {
      const { body } = await call("GET", `/api/workflow/calm/runs/${runId}`);
      expect(body.finalOutputs.n).toBeGreaterThanOrEqual(n);
      expect(body.finalOutputs.n).toBeLessThanOrEqual(until);
    }
    await service.stop();
  },
  10 * 60_000,
);
