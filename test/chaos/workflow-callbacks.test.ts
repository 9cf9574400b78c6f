import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { paid, sendEvent } from "../harness/callback-run.ts";
import { startHookServer } from "../harness/hook-server.ts";
import { workflowFolder, type WorkflowProcess } from "../harness/workflow-process.ts";

const LIVES = process.env.PORTICO_LONG ? 20 : 3;
const RUNS = 25;

it(
  `${LIVES} kills at random instants while events arrive: each accepted event, and no other, is the output of its run, and each run that gave out its address takes one event`,
  async () => {
    using folder = workflowFolder();
    await using hook = await startHookServer();
    const definition: any = paid(hook);
    // Runs go on after the event, so that kills come between the event and the end.
    definition.nodes.rest = { type: "wait", needs: ["pay"], with: { for: "100ms" } };
    folder.deploy("paid.json", definition);
    const config = { workflow: { publicUrl: "https://workflows.example/in-front/", http: { allow: [hook.host] } } };
    /** The accepted event of each run; undefined before it is accepted, and after an answer that was lost. */
    const runs = new Map<string, { accepted: number | undefined; readonly sent: Set<number> }>();
    let service: WorkflowProcess;
    for (let life = 0; ; life++) {
      service = await folder.start("workflow", { hasOwnProcess: true, config });
      for (let n = 0; n < RUNS; n++) {
        const runId = await service.trigger("paid");
        runs.set(runId, { accepted: undefined, sent: new Set() });
      }
      if (life === LIVES) break;
      const url = service.url("workflow");
      const sending = Promise.all([...runs].map(([runId, run], at) => send({ url }, runId, run, at)));
      await sleep(100 + Math.random() * 900);
      service.signal("SIGKILL");
      await Promise.all([sending, service.exited]);
    }
    const url = service.url("workflow");
    await expect
      .poll(
        async () => {
          await Promise.all([...runs].map(([runId, run]) => send({ url }, runId, run, 0)));
          const all = (await service.call("GET", "/api/workflow/paid/runs")).body.runs as { status: string }[];
          return all.every(({ status }) => status === "completed");
        },
        { timeout: 120_000 },
      )
      .toBe(true);
    let accepted = 0;
    for (const [runId, run] of runs) {
      const { id } = (await service.call("GET", `/api/workflow/paid/runs/${runId}`)).body.finalOutputs.event as { id: number };
      if (run.accepted === undefined) expect([...run.sent]).toContain(id);
      else expect([runId, id]).toEqual([runId, run.accepted]);
      if (run.accepted !== undefined) accepted++;
    }
    expect(accepted).toBeGreaterThan(RUNS);
    await service.stop();

    async function send(
      to: { readonly url: string },
      runId: string,
      run: { accepted: number | undefined; sent: Set<number> },
      at: number,
    ) {
      await sleep(at * 5);
      const told = hook.received.find(({ headers }) => headers["idempotency-key"] === `${runId}:pay:1`);
      if (!told) return;
      const address = told.body.to as string;
      const id = Math.random();
      run.sent.add(id);
      const answer = await sendEvent(to, address.slice(address.indexOf("/callback/")), { id }).catch(() => undefined);
      if (answer?.status === 200) {
        expect(run.accepted).toBe(undefined);
        run.accepted = id;
      } else if (answer) expect([409, 410, 503]).toContain(answer.status);
    }
  },
  10 * 60_000,
);
