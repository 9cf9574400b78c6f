import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openEventSource } from "../../harness/event-source.ts";
import { isClusterRun } from "../../harness/members.ts";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const held = (gate: string, needs: string[] = []) => ({ type: "repeatable", needs, with: { say: gate, gate } });
const definitions = {
  "three.json": { nodes: { a: held("a"), b: held("b", ["a"]), c: held("c", ["b"]) }, outputs: { c: "${{ nodes.c.output }}" } },
  "fails.json": { nodes: { a: { type: "scripted", with: { gate: "a", fails: 1 } } } },
};
const NAMES = [
  ...["workflow:started", "workflow:node_start a", "workflow:node_complete a", "workflow:node_start b"],
  ...["workflow:node_complete b", "workflow:node_start c", "workflow:node_complete c", "workflow:complete"],
];
const DAY_MS = 86_400_000;

afterEach(() => vi.restoreAllMocks());

describe("a reader with a Last-Event-ID", () => {
  it("gets the events after it, of a run that continues, at whatever process", async () => {
    await using service = await startWorkflowService({ definitions });
    service.nodes.gate("a").open();
    const runId = await service.trigger("three");
    const ids: string[] = [];
    // Each stream reads one event, and the next one begins after it.
    for (let at = 0; at < 4; at++) {
      const events = await service.events(runId, ids.at(-1));
      expect(nameOf(await events.next())).toBe(NAMES[at]);
      events.leave();
      ids.push(...events.ids);
    }
    service.nodes.gate("b").open();
    const rest = await service.events(runId, ids.at(-1));
    service.nodes.gate("c").open();
    expect((await rest.rest()).map(nameOf)).toEqual(NAMES.slice(4));
    expect(new Set([...ids, ...rest.ids]).size).toBe(NAMES.length);
  });

  it("gets the events that it missed of a run that has ended meanwhile, each with the id that it had", async () => {
    await using service = await startWorkflowService({ definitions });
    for (const gate of ["a", "b"]) service.nodes.gate(gate).open();
    const runId = await service.trigger("three");
    const whole = await service.events(runId);
    service.nodes.gate("c").open();
    expect((await whole.rest()).map(nameOf)).toEqual(NAMES);
    expect(whole.ids).not.toContain("");
    for (const [at, id] of whole.ids.entries()) {
      const events = await service.events(runId, id);
      expect((await events.rest()).map(nameOf)).toEqual(NAMES.slice(at + 1));
      expect(events.ids).toEqual(whole.ids.slice(at + 1));
    }
  });

  it("that has received the error of a run gets only its end, and after that no event", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("fails");
    const whole = await service.events(runId);
    service.nodes.gate("a").open();
    const names = (await whole.rest()).map(nameOf);
    expect(names.slice(-3)).toEqual(["workflow:node_error a", "workflow:error a", "workflow:complete"]);
    const after = async (id: string) => (await (await service.events(runId, id)).rest()).map(nameOf);
    expect(await after(whole.ids.at(-3)!)).toEqual(names.slice(-2));
    expect(await after(whole.ids.at(-2)!)).toEqual(["workflow:complete"]);
    expect(await after(whole.ids.at(-1)!)).toEqual([]);
  });

  it("that this run has not sent gets what a reader without it gets", async () => {
    await using service = await startWorkflowService({ definitions });
    const [runId, other] = [await service.trigger("three"), await service.trigger("three")];
    const running = await service.events(runId);
    await running.next();
    const [first] = running.ids;
    running.leave();
    const unknown = [
      ...["", "0", "7", `${other}:0`, `${runId}:999`, `${runId}:-1`, `${runId}:01`, `${runId}:1.5`, `${runId}:`],
      ...[`${runId}:complete`, `${runId}:error`, `${first} `.repeat(2), "x".repeat(4000)],
    ];
    for (const id of unknown) {
      const events = await service.events(runId, id);
      expect([id, (await events.next())?.event]).toEqual([id, "workflow:started"]);
      events.leave();
    }
    for (const gate of ["a", "b", "c"]) service.nodes.gate(gate).open();
    await service.ended("three", runId);
    for (const id of [`${other}:0`, `${runId}:999`, "7"]) {
      expect((await (await service.events(runId, id)).rest()).map(nameOf)).toEqual(["workflow:complete"]);
    }
  });
});

describe("a stream tells its reader how long to wait before it connects again", () => {
  it("3 s while the run continues, and a day if another reader takes over or the run ends", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("three");
    const first = await service.events(runId);
    await first.next();
    expect(first.retries).toEqual([3000]);
    const second = await service.events(runId);
    await first.rest();
    expect(first.retries).toEqual([3000, DAY_MS]);
    for (const gate of ["a", "b", "c"]) service.nodes.gate(gate).open();
    await second.rest();
    expect(second.retries).toEqual([3000, DAY_MS]);
    const late = await service.events(runId, second.ids.at(-1));
    await late.rest();
    expect(late.retries).toEqual([DAY_MS]);
  });

  it("3 s if the service stops", async () => {
    const service = await startWorkflowService({ definitions });
    const runId = await service.trigger("three");
    const events = await service.events(runId);
    await events.next();
    await Promise.all([service.close(), events.rest().catch(() => {})]);
    expect(events.retries).toEqual([3000]);
  });
});

describe("an EventSource client", () => {
  it("whose connection breaks gets every event once", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("three");
    const reader = open(service, runId);
    await heard(reader, 2);
    reader.cut();
    for (const gate of ["a", "b"]) service.nodes.gate(gate).open();
    await heard(reader, 6);
    reader.cut();
    service.nodes.gate("c").open();
    await heard(reader, 8);
    expect(reader.heard.map(nameOf)).toEqual(NAMES);
    expect(reader.requests).toEqual([undefined, reader.heard[1]!.id, reader.heard[5]!.id]);
  });

  it("that a second one takes over from waits for a day, and does not take over again", async () => {
    await using service = await startWorkflowService({ definitions });
    let waited = 0;
    const { setTimeout: wait } = globalThis;
    // Services in this process may wait for a day, too.
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms?: number) => {
      if (ms === DAY_MS && /[\\/]node_modules[\\/]eventsource[\\/]/.test(new Error().stack ?? "")) waited++;
      return wait(run, ms);
    }) as typeof setTimeout);
    const waits = () => waited;
    const runId = await service.trigger("three");
    const first = open(service, runId);
    await heard(first, 2);
    const second = open(service, runId);
    await expect.poll(() => first.ends).toEqual([undefined]);
    expect(waits()).toBe(1);
    for (const gate of ["a", "b", "c"]) service.nodes.gate(gate).open();
    await heard(second, 8);
    expect(second.heard.map(nameOf)).toEqual(NAMES);
    // The run has ended: it does not connect again, either.
    await expect.poll(() => second.ends).toEqual([undefined]);
    expect(waits()).toBe(2);
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
  });

  it("is told after a restart that the run has no live events; in a cluster it gets every event once", async () => {
    const first = await startWorkflowService({ definitions });
    first.nodes.gate("a").open();
    const runId = await first.trigger("three");
    let url = first.url;
    const reader = openEventSource(() => url, runId);
    onTestFinished(() => reader.close());
    await heard(reader, 4);
    const nodes = createScriptedNodes();
    const second = await startWorkflowService({ dataDir: first.dataDir, nodes });
    onTestFinished(async () => {
      await second.close();
      await first.close().catch(() => {});
    });
    // Another process has taken the run over.
    await expect.poll(() => nodes.played.map(({ nodeId }) => nodeId)).toContain("b");
    url = second.url;
    reader.cut();
    if (!isClusterRun) {
      await expect.poll(() => reader.ends).toEqual([undefined, 404]);
      expect(reader.isClosed).toBe(true);
      return;
    }
    for (const gate of ["b", "c"]) nodes.gate(gate).open();
    await heard(reader, 8);
    expect(reader.heard.map(nameOf)).toEqual(NAMES);
  });
});

function open(service: WorkflowService, runId: string) {
  const reader = openEventSource(() => service.url, runId);
  onTestFinished(() => reader.close());
  return reader;
}

function heard(reader: ReturnType<typeof openEventSource>, count: number): Promise<void> {
  return expect.poll(() => reader.heard.length, { timeout: 20_000 }).toBe(count);
}

function nameOf(event: { readonly event: string; readonly data: any } | undefined): string {
  return [event?.event, event?.data.nodeId].filter(Boolean).join(" ");
}
