import { setTimeout as sleep } from "node:timers/promises";
import { type BusHub, createBusHub, memoryBus } from "@portico/adapters/bus/memory";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { createRecentLines } from "@portico/adapters/telemetry/recent-lines";
import { ports } from "@portico/core";
import { logPage } from "@portico/operator/log";
import { createParser } from "eventsource-parser";
import { describe, expect, it } from "vitest";
import { startAgentService, TOKENS } from "../../harness/agent-app.ts";
import { httpCall } from "../../harness/http-call.ts";

const LINES_TOPIC = "log/lines";
const FOLLOWERS_TOPIC = "log/followers";

/** A process of an instance: all with one hub hear each other. */
async function start(hub: BusHub, pid: number, clock?: ManualClock) {
  const lines = createRecentLines();
  const service = await startAgentService({
    telemetry: openTelemetry({ level: "debug", format: "text", destination: { write() {} }, recentLines: lines }),
    adapters: [memoryBus({ hub })],
    plugins: [logPage({ lines, process: { host: "desk", pid } })],
    ...(clock && { clock }),
  });
  const [{ log }, bus] = [service.app.port(ports.telemetry), service.app.port(ports.bus)];
  return { service, lines, log, bus, [Symbol.asyncDispose]: () => service.close() };
}

/** What a reader of a process has received. */
async function follow({ url }: { readonly url: string }, query: string) {
  const reply = await httpCall(url, { path: `/api/log?${query}`, headers: { "x-agent-service-token": TOKENS.owner } });
  const heard: { readonly event: string; readonly data: any; readonly id: string | undefined }[] = [];
  const parser = createParser({ onEvent: ({ event, data, id }) => heard.push({ event: event!, data: JSON.parse(data), id }) });
  const read = async () => {
    for (let piece = await reply.read(); piece !== undefined; piece = await reply.read()) parser.feed(piece.toString());
  };
  const of = (event: string) => heard.filter((each) => each.event === event).map(({ data }) => data);
  const said = () => of("log:line").map(({ msg, process }) => (process === undefined ? msg : `${process}: ${msg}`));
  return { heard, of, said, begin: () => void read().catch(() => {}), leave: () => reply.leave() };
}

async function reading(...given: Parameters<typeof follow>) {
  const reader = await follow(...given);
  reader.begin();
  await expect.poll(() => reader.of("log:opened")).toHaveLength(1);
  return reader;
}

/** Writes a line again and again until it arrives: a process hears only after a moment that another one follows. */
async function untilFollowed(log: ports.Log, arrived: () => boolean, fields: ports.LogFields = {}): Promise<void> {
  await expect
    .poll(() => {
      if (!arrived()) log.error("hello", fields);
      return arrived();
    })
    .toBe(true);
}

describe("a reader of the log of all processes", () => {
  it("gets the new lines of every process, each with the name of its process, and its own earlier lines", async () => {
    const hub = createBusHub();
    await using one = await start(hub, 1);
    await using two = await start(hub, 2);
    await using three = await start(hub, 3);
    one.log.info("earlier", { area: "kitchen" });
    const reader = await reading(one.service, "processes=all&kind=message");
    await expect.poll(reader.said).toEqual(["desk/1: earlier"]);
    for (const { log, pid } of [
      { log: two.log, pid: 2 },
      { log: three.log, pid: 3 },
    ])
      await untilFollowed(log, () => reader.said().includes(`desk/${pid}: hello`));
    one.log.info("of one");
    two.log.info("of two");
    three.log.info("of three");
    await expect.poll(reader.said).toEqual(expect.arrayContaining(["desk/1: of one", "desk/2: of two", "desk/3: of three"]));
    expect(reader.of("log:missed")).toEqual([]);
    reader.leave();
  });

  it("gets the lines of other processes by its filters, and two readers get those of their own", async () => {
    const hub = createBusHub();
    await using one = await start(hub, 1);
    await using two = await start(hub, 2);
    const kitchen = await reading(one.service, "processes=all&area=kitchen&last=0");
    const warnings = await reading(one.service, "processes=all&level=warn&area=garden&last=0");
    await untilFollowed(two.log, () => kitchen.said().length > 0, { area: "kitchen" });
    await untilFollowed(two.log, () => warnings.said().length > 0, { area: "garden" });
    two.log.info("quiet", { area: "garden" });
    two.log.info("cooks", { area: "kitchen" });
    two.log.warn("grows", { area: "garden" });
    await expect.poll(kitchen.said).toEqual(expect.arrayContaining(["desk/2: cooks"]));
    await expect.poll(warnings.said).toEqual(expect.arrayContaining(["desk/2: grows"]));
    expect(new Set(kitchen.said())).toEqual(new Set(["desk/2: hello", "desk/2: cooks"]));
    expect(new Set(warnings.said())).toEqual(new Set(["desk/2: hello", "desk/2: grows"]));
    for (const reader of [kitchen, warnings]) reader.leave();
  });

  it("does not get them by default, and no line names a process then", async () => {
    const hub = createBusHub();
    await using one = await start(hub, 1);
    await using two = await start(hub, 2);
    const own = await reading(one.service, "kind=message&last=0");
    const all = await reading(one.service, "processes=all&kind=message&last=0");
    await untilFollowed(two.log, () => all.said().includes("desk/2: hello"));
    one.log.info("of one");
    await expect.poll(own.said).toEqual(["of one"]);
    for (const reader of [own, all]) reader.leave();
  });

  it("that is slow is told how many lines of another process it missed, and that process does not wait for it", async () => {
    const hub = createBusHub();
    await using one = await start(hub, 1);
    await using two = await start(hub, 2);
    const quick = await reading(one.service, "processes=all&text=hello&last=0");
    await untilFollowed(two.log, () => quick.said().length > 0);
    quick.leave();
    const slow = await follow(one.service, "processes=all&text=flood&last=0");
    // Its filter has arrived, which the hub does at once: what comes before the answer's first read waits in its queue.
    const written = 20_000;
    for (let n = 0; n < written; n++) {
      two.log.info("flood", { filling: "x".repeat(190), count: n });
      if (n % 400 === 0) await sleep(10);
    }
    slow.begin();
    const known = () =>
      slow.said().length + slow.of("log:missed").reduce((sum: number, { lines }: { lines: number }) => sum + lines, 0);
    await expect.poll(known, { timeout: 20_000 }).toBeGreaterThanOrEqual(written);
    expect(slow.of("log:missed").length).toBeGreaterThan(0);
    expect(new Set(slow.of("log:missed").map(({ process }: { process: string }) => process))).toEqual(new Set(["desk/2"]));
    slow.leave();
  });

  it("that does not read has a bounded queue, whose dropped lines are counted", async () => {
    const hub = createBusHub();
    await using one = await start(hub, 1);
    await using two = await start(hub, 2);
    const slow = await follow(one.service, "processes=all&text=flood&last=0");
    const [messages, lines] = [40, 500];
    const text = JSON.stringify({ level: "info", time: "2030-01-01T00:00:00.000Z", msg: "flood", filling: "x".repeat(2_000) });
    for (let message = 0; message < messages; message++) {
      two.bus.publish(LINES_TOPIC, {
        process: { id: "other", host: "far", pid: 9 },
        ...{ before: message * lines, missed: 0, lines: Array.from({ length: lines }, () => text) },
      });
      // Lets the answer write, until its buffers are full.
      await sleep(5);
    }
    slow.begin();
    const missed = () => slow.of("log:missed").reduce((sum: number, each: { lines: number }) => sum + each.lines, 0);
    await expect.poll(() => slow.said().length + missed(), { timeout: 20_000 }).toBe(messages * lines);
    expect(missed()).toBeGreaterThan(0);
    slow.leave();
  });

  it("is told how many lines were lost on their way", async () => {
    const hub = createBusHub();
    await using one = await start(hub, 1);
    const reader = await reading(one.service, "processes=all&kind=message&last=0");
    await using two = await start(hub, 2);
    const tell = (before: number, msg: string) =>
      two.bus.publish(LINES_TOPIC, {
        process: { id: "other", host: "far", pid: 9 },
        ...{ before, missed: 0, lines: [JSON.stringify({ level: "info", time: "2030-01-01T00:00:00.000Z", msg })] },
      });
    tell(7, "first");
    tell(8, "second");
    tell(14, "third");
    await expect.poll(reader.said).toEqual(["far/9: first", "far/9: second", "far/9: third"]);
    expect(reader.of("log:missed")).toEqual([{ lines: 5, process: "far/9" }]);
    reader.leave();
  });
});

describe("between processes", () => {
  it("nothing is sent without a reader, also after the last one has left or its process has died", async () => {
    const hub = createBusHub();
    const clock = createManualClock();
    await using two = await start(hub, 2, clock);
    await using witness = await start(hub, 8);
    const sent: any[] = [];
    witness.bus.subscribe(LINES_TOPIC, { received: (message) => sent.push(message), missed() {} });
    const write = async () => {
      two.log.info("line");
      // It begins to gather in a later step of the event loop, and sends what it has after a moment.
      await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(200);
      await new Promise((resolve) => setImmediate(resolve));
    };
    const followers = (wanted: object[]) => witness.bus.publish(FOLLOWERS_TOPIC, { process: "dying", wanted });
    for (let n = 0; n < 3; n++) await write();
    expect(sent).toEqual([]);
    const isSent = async () => {
      const before = sent.length;
      await write();
      await write();
      return sent.length > before;
    };
    followers([{}]);
    await expect.poll(isSent).toBe(true);
    followers([]);
    await expect.poll(isSent).toBe(false);
    followers([{}]);
    await expect.poll(isSent).toBe(true);
    // It says nothing any more.
    await clock.advance(15_000);
    await expect.poll(isSent).toBe(false);
    expect(await isSent()).toBe(false);
  });
});

it("a reader is told the areas of the kept lines", async () => {
  await using own = await start(createBusHub(), 1);
  for (const area of ["kitchen", "garden", "kitchen"]) own.log.info("line", { area });
  const reader = await reading(own.service, "kind=message&area=garden");
  expect(reader.of("log:opened")[0].areas).toEqual(expect.arrayContaining(["garden", "kitchen"]));
  reader.leave();
});

it("kind=work chooses the lines of turns and workflow runs, and no requests", async () => {
  await using own = await start(createBusHub(), 1);
  own.log.info("A turn began", { turn: "t", run: "r" });
  own.log.info("A workflow run began", { runId: "w" });
  own.log.info("other", { agent: "helper" });
  await own.service.call("owner", "GET", "/api/nothing");
  const reader = await reading(own.service, "kind=work");
  await expect.poll(reader.said).toEqual(["A turn began", "A workflow run began"]);
  reader.leave();
});
