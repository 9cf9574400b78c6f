import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createGate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";
import { startWebhookService, type WebhookService, type WebhookServiceOptions } from "../../harness/webhook-app.ts";

let folder: ReturnType<typeof temporaryFolder>;
let service: WebhookService;
let secret: string;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

async function start(options: WebhookServiceOptions = {}): Promise<void> {
  service = await startWebhookService({ dataDir: folder.path, ...options });
  secret = await service.save("work", "{{text}}");
}
/** The next process, on what the one before has left. */
const restart = async (options: WebhookServiceOptions = {}) => {
  await service.close();
  service = await startWebhookService({ dataDir: folder.path, ...options });
};
const work = async (text: string) =>
  expect((await service.trigger(secret, { event: "work", payload: { text } })).status).toBe(200);
const runs = async (): Promise<any[]> => (await service.call("owner", "GET", "/api/runs?limit=1000")).body.runs;
const receiptsOf = async ({ run_id: runId }: { run_id: string }) =>
  (await service.call("owner", "GET", `/api/runs/${runId}/receipt`)).body.receipts;
/** The runs by their titles, after all have ended. */
const ended = (count: number) =>
  vi.waitFor(async () => {
    const all = await runs();
    expect(all.filter(({ status }) => status !== "running")).toHaveLength(count);
    return Object.fromEntries(all.map((run) => [run.title, run]));
  }, 30_000);
const unavailable = () => new ports.LogUnavailable("The store is away");

describe("a store that is away for a moment", () => {
  it.each(["nothing was written", "all was written, and the answer was lost"])(
    "when a turn begins and when it ends: it is executed once, with one receipt (%s)",
    async (fate) => {
      await start();
      const isLost = fate.startsWith("all");
      const records = service.app.port(ports.records);
      const log = service.app.port(ports.log);
      const batch = records.batch.bind(records);
      const appendAll = log.appendAll.bind(log);
      const begins = vi.spyOn(records, "batch").mockImplementationOnce(async (writes) => {
        if (isLost) await batch(writes);
        throw new ports.RecordsUnavailable("The store is away");
      });
      const ends = vi.spyOn(log, "appendAll").mockImplementationOnce(async (...given) => {
        if (isLost) await appendAll(...given);
        throw unavailable();
      });
      await work("once");
      const { once } = await ended(1);
      expect([begins.mock.calls.length, ends.mock.calls.length]).toEqual(isLost ? [1, 1] : [2, 2]);
      expect(once.status).toBe("completed");
      expect(await receiptsOf(once)).toEqual([expect.objectContaining({ output: "You said: once" })]);
      expect(service.engine.played).toEqual(["once"]);
    },
  );
});

describe("a store that is away until the service stops", () => {
  it("the turn is closed at the next start, with one receipt, and not executed again", async () => {
    await start();
    const ends = vi.spyOn(service.app.port(ports.log), "appendAll").mockRejectedValue(unavailable());
    await work("once");
    await expect.poll(() => ends.mock.calls.length).toBeGreaterThan(0);
    const { played } = service.engine;
    await restart();
    const { once } = await ended(1);
    expect(once).toMatchObject({ status: "failed", failure_reason: "process_restart" });
    expect(await receiptsOf(once)).toHaveLength(1);
    expect([played, service.engine.played]).toEqual([["once"], []]);
  });
});

describe("a service that stops in order", () => {
  it("marks what executes, with what was said, and leaves what waits for the next start", async () => {
    await start({ background: { concurrencyPerAgent: 1 } });
    service.engine.on("first", async (_turn, context) => {
      await context.say({ type: "text", delta: "So far" });
      await untilStopped(context);
    });
    for (const text of ["first", "second", "third"]) await work(text);
    await expect.poll(() => service.engine.played).toEqual(["first"]);
    await restart({ background: { concurrencyPerAgent: 1 } });
    const { first, second, third } = await ended(3);
    expect(first).toMatchObject({ status: "idle", interruption_reason: "system_suspension" });
    expect(await receiptsOf(first)).toEqual([
      expect.objectContaining({ output: "So far", interruption_reason: "system_suspension" }),
    ]);
    expect([second.status, third.status]).toEqual(["completed", "completed"]);
    expect(service.engine.played).toEqual(["second", "third"]);
  });
});

describe("an agent that changes while its events wait", () => {
  it.each<[how: string, change: () => void]>([
    ["is deleted", () => rmSync(dirname(service.agentFile()), { recursive: true })],
    ["is broken", () => service.writeText("{")],
  ])("and %s: they fail, each with a receipt, and nothing of them is played", async (_how, change) => {
    await start({ background: { concurrencyPerAgent: 1 } });
    const gate = createGate();
    service.engine.on("first", () => gate.opened.then(() => {}));
    for (const text of ["first", "second", "third"]) await work(text);
    await expect.poll(() => service.engine.played).toEqual(["first"]);
    change();
    await expect.poll(async () => (await service.trigger(secret, { event: "none" })).status).not.toBe(400);
    gate.open();
    const { first, second, third } = await ended(3);
    expect(first.status).toBe("completed");
    for (const run of [second, third]) {
      expect(run).toMatchObject({ status: "failed", failure_reason: "error" });
      expect(await receiptsOf(run)).toHaveLength(1);
    }
    expect(service.engine.played).toEqual(["first"]);
  });
});

describe("a time-out that comes while the end is written", () => {
  it("changes nothing: the turn was done in time", async () => {
    const clock = createManualClock();
    await start({ clock, background: { timeoutMs: 60_000 } });
    const gate = createGate();
    const log = service.app.port(ports.log);
    const appendAll = log.appendAll.bind(log);
    const ends = vi.spyOn(log, "appendAll").mockImplementation(async (...given) => {
      await gate.opened;
      return appendAll(...given);
    });
    await work("in time");
    await expect.poll(() => ends.mock.calls.length).toBe(1);
    await clock.advance(60_000);
    gate.open();
    const { "in time": run } = await ended(1);
    expect([run.status, run.interruption_reason]).toEqual(["completed", undefined]);
  });
});

describe("strange and huge texts", () => {
  const LARGE = 17 * 1024 * 1024;

  it("an output that no log entry holds is cut in the receipt", async () => {
    await start();
    service.engine.otherwise(async () => ({ output: "A".repeat(LARGE) }));
    await work("much");
    const { much } = await ended(1);
    expect(much.status).toBe("completed");
    expect((await receiptsOf(much))[0].output).toContain(`[cut: ${LARGE} characters in all]`);
  });

  it("what no store takes at all becomes a failed run, and the next event is worked on", async () => {
    await start();
    service.engine.on("much", async () => ({
      toolCalls: [{ callId: "c".repeat(LARGE), toolId: "t", name: "t", arguments: {}, isError: false }],
    }));
    await work("much");
    await work("next");
    const { much, next } = await ended(2);
    expect(much).toMatchObject({ status: "failed", failure_reason: "error" });
    expect(await receiptsOf(much)).toHaveLength(1);
    expect(next.status).toBe("completed");
  });

  it("U+0000 and lone surrogates go through prompt, title, answer, receipt and delivery", async () => {
    service = await startWebhookService({ dataDir: folder.path });
    secret = await service.save("work", "{{text}}", { toolIds: ["SendUserMessage"] });
    service.engine.otherwise(async (_turn, { callTool, say, signal }) => {
      await say({ type: "text", delta: "a\0\ud800" });
      await callTool({ toolId: "SendUserMessage", arguments: { text: "b\0\ud800" } }, signal);
    });
    await work("c\0\ud800");
    const run = (await ended(1))["c\0\ufffd"];
    expect(run.status).toBe("completed");
    expect(await receiptsOf(run)).toEqual([expect.objectContaining({ input: "c\0\ufffd", output: "a\0\ud800" })]);
    const { items } = (await service.manage("GET", "helper/schedule-messages")).body;
    expect(items.map(({ delivery }: any) => delivery.message)).toEqual(["b\0\ud800"]);
  });
});
