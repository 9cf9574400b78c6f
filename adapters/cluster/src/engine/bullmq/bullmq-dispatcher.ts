import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { RedisServer } from "../../redis/server.ts";
import type { Dispatcher } from "../cluster/dispatcher.ts";
import type { Offer } from "../cluster/work-row.ts";
import { JobLoop } from "./job-loop.ts";
import { type JobData, nameOf, namesOf, queueNameOf, toJob, toJobs } from "./offer-job.ts";

/** Jobs that one command lists. */
const LISTED_AT_ONCE = 1000;
/** BullMQ keeps a stream of events per queue, which nothing here reads. */
const EVENTS = 100;

/** The queue of all processes in BullMQ: one queue per kind. Jobs carry only which works may begin. */
export function createBullmqDispatcher(redis: RedisServer): Dispatcher {
  const prefix = `${redis.prefix}:engine`;
  const queues = new Map<string, Queue<JobData>>();
  const loops = new Map<string, JobLoop>();
  const fetching = connectForFetching(redis);
  const options = { prefix, skipVersionCheck: true } as const;

  const queueOf = (kind: string): Queue<JobData> => {
    const known = queues.get(kind);
    if (known) return known;
    const queue = new Queue<JobData>(queueNameOf(kind), {
      ...options,
      connection: redis.commands,
      // Commands fail at once while Redis is unavailable.
      skipWaitingForReady: true,
      streams: { events: { maxLen: EVENTS } },
    });
    queue.on("error", () => {});
    queues.set(kind, queue);
    return queue;
  };
  /** Adds the offers of one event-loop turn in one round trip per kind. */
  const add = async (offers: readonly Offer[]): Promise<void> => {
    const ofKind = Map.groupBy(offers, ({ kind }) => kind);
    for (const kind of ofKind.keys()) loops.get(kind)?.noteOffers();
    await Promise.all([...ofKind].map(([kind, some]) => queueOf(kind).addBulk(toJobs(some))));
  };
  /** Names of offers in jobs that wait or were just taken, in pages. */
  async function* queuedNames(kind: string): AsyncGenerator<readonly string[]> {
    // New jobs enter at the beginning of the list, so no page misses a job. A taken job is in the second list until it ends.
    for (const list of ["wait", "active"]) {
      for (let from = 0, isMore = true; isMore; from += LISTED_AT_ONCE) {
        const ids = await redis.commands.lrange(queueOf(kind).toKey(list), from, from + LISTED_AT_ONCE - 1);
        yield ids.flatMap(namesOf);
        isMore = ids.length === LISTED_AT_ONCE;
      }
    }
  }
  let waiting: Offer[] = [];
  let adding: Promise<void> | undefined;
  const flush = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    const batch = waiting;
    [waiting, adding] = [[], undefined];
    await add(batch);
  };

  const stop = async (): Promise<void> => void (await Promise.all([...loops.values()].map((loop) => loop.close())));

  return {
    offer(offers) {
      if (offers.length === 0) return Promise.resolve();
      waiting.push(...offers);
      return (adding ??= flush());
    },
    async missing(offers) {
      const missing: Offer[] = [];
      for (const [kind, some] of Map.groupBy(offers, ({ kind }) => kind)) {
        const unseen = new Map(some.map((offer) => [nameOf(offer), offer]));
        for await (const names of queuedNames(kind)) for (const name of names) unseen.delete(name);
        missing.push(...unseen.values());
      }
      return missing;
    },
    consume(kind, consumer) {
      const loop = new JobLoop({
        ...{ kind, consumer, fetching, options },
        refuse: () => redis.refuse("engine"),
        handBack: async (rest) => void (await queueOf(kind).addBulk([toJob(rest, true)])),
      });
      loops.set(kind, loop);
      return () => loop.wake();
    },
    isIdle: (kind) => loops.get(kind)?.isIdle ?? false,
    stop,
    async close() {
      await stop();
      await Promise.all([...queues.values()].map((queue) => queue.close().catch(() => {})));
      fetching.disconnect();
    },
  };
}

/** A connection for commands that block, which take longer than the timeout of other commands. BullMQ duplicates it for each kind. */
function connectForFetching(redis: RedisServer): Redis {
  const settings = { maxRetriesPerRequest: null, commandTimeout: undefined, socketTimeout: undefined };
  const connection = redis.connect({ ...settings, connectionName: "portico-engine" });
  // Duplicates are connections of the server, too: their errors are handled from the beginning, and they close with it.
  connection.duplicate = (more) => redis.connect({ ...settings, ...more });
  return connection;
}
