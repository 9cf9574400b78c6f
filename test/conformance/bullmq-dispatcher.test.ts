import { createBullmqDispatcher } from "@portico/cluster/engine/bullmq/bullmq-dispatcher";
import type { Dispatcher } from "@portico/cluster/engine/cluster/dispatcher";
import type { Offer } from "@portico/cluster/engine/cluster/work-row";
import { ioredisServer } from "@portico/cluster/redis/ioredis";
import type { RedisServer } from "@portico/cluster/redis/server";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { redisPlace } from "../harness/redis.ts";
import { openAdapter } from "./open-adapter.ts";

const place = await redisPlace();

describe.runIf(place)("the queue of engine/bullmq", () => {
  let server: RedisServer;
  let closeServer: () => Promise<void>;
  let dispatchers: Dispatcher[];
  beforeEach(async () => {
    ({ port: server, close: closeServer } = await openAdapter(ioredisServer(place!()), [memoryTelemetry({})]));
    dispatchers = [];
  });
  afterEach(async () => {
    await Promise.all(dispatchers.map((each) => each.close()));
    await closeServer();
  });

  const open = (): Dispatcher => {
    const dispatcher = createBullmqDispatcher(server);
    dispatchers.push(dispatcher);
    return dispatcher;
  };
  const offersOf = (count: number, from = 1, isBack = false): Offer[] =>
    Array.from({ length: count }, (_, at) => ({ kind: "k", id: `w${from + at}`, work: from + at, generation: 1, isBack }));
  const works = (offers: readonly Offer[]): number[] => offers.map(({ work }) => work);
  const jobs = () => server.commands.llen(`${server.prefix}:engine:k:wait`);

  /** Takes offers while it has room. */
  const consumer = (dispatcher: Dispatcher, room: number) => {
    const taken: number[] = [];
    let left = room;
    const wake = dispatcher.consume("k", {
      hasRoom: () => left > 0,
      take({ work }) {
        if (left === 0) return false;
        left--;
        taken.push(work);
        return true;
      },
    });
    const makeRoom = (more: number): void => {
      left += more;
      wake();
    };
    return { taken, makeRoom };
  };

  it("takes a burst of offers in a few jobs, and brings each offer once, in order", async () => {
    const dispatcher = open();
    await dispatcher.offer(offersOf(100));
    expect(await jobs()).toBeLessThanOrEqual(10);
    const { taken } = consumer(dispatcher, 200);
    await expect.poll(() => taken).toEqual(works(offersOf(100)));
    await expect.poll(() => dispatcher.isIdle("k")).toBe(true);
    expect(taken).toHaveLength(100);
  });

  it("spreads a few offers over processes", async () => {
    await open().offer(offersOf(4));
    expect(await jobs()).toBe(4);
  });

  it("brings what a process has no room for to others, before later offers", async () => {
    await open().offer(offersOf(100));
    const whole = await jobs();
    const first = consumer(open(), 5);
    await expect.poll(() => first.taken).toEqual([1, 2, 3, 4, 5]);
    // A process hands back what it has no room for after it has ended the job.
    await expect.poll(jobs).toBe(whole);
    const second = consumer(open(), 20);
    await expect.poll(() => second.taken).toEqual(works(offersOf(20, 6)));
    await expect.poll(jobs).toBe(whole - 1);
    first.makeRoom(75);
    await expect.poll(() => first.taken.slice(5)).toEqual(works(offersOf(75, 26)));
  });

  it("brings what comes back before all that has not executed", async () => {
    const dispatcher = open();
    const back = offersOf(30, 100, true);
    await dispatcher.offer([...offersOf(40), ...back]);
    const { taken } = consumer(dispatcher, 31);
    await expect.poll(() => taken).toEqual([...works(back), 1]);
  });

  it("names the offers that no job has: unknown ones, outdated ones, and those that were taken", async () => {
    const dispatcher = open();
    const waiting = offersOf(3000);
    await dispatcher.offer(waiting);
    const unknown = [...offersOf(2, 9000), { ...waiting[7]!, generation: 2 }];
    expect(await dispatcher.missing([...waiting, ...unknown])).toEqual(unknown);
    const { taken } = consumer(dispatcher, 20);
    await expect.poll(() => taken.length).toBe(20);
    await expect.poll(async () => works(await dispatcher.missing(waiting))).toEqual(taken);
    await server.commands.del(`${server.prefix}:engine:k:wait`);
    expect(await dispatcher.missing(waiting)).toEqual(waiting);
  });

  it("drops a job in the form of another version, and brings those behind it", async () => {
    const dispatcher = open();
    await dispatcher.offer(offersOf(1));
    await server.commands.hset(`${server.prefix}:engine:k:1-1`, "data", JSON.stringify({ id: "w1", work: 1 }));
    await dispatcher.offer(offersOf(1, 2));
    const { taken } = consumer(dispatcher, 5);
    await expect.poll(() => taken).toEqual([2]);
    expect(works(await dispatcher.missing(offersOf(1)))).toEqual([1]);
  });

  it.each(["{", "null", "[]", '{"offers":[null]}', '{"offers":[{"work":"1"}]}'])(
    "ignores a job of another program, whose data are %s, and brings those behind it",
    async (data) => {
      const dispatcher = open();
      await dispatcher.offer(offersOf(1));
      await server.commands.hset(`${server.prefix}:engine:k:1-1`, "data", data);
      for (const from of [2, 3]) await dispatcher.offer(offersOf(1, from));
      const { taken } = consumer(dispatcher, 5);
      await expect.poll(() => taken).toEqual([2, 3]);
    },
  );
});
