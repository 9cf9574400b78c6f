import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { RedisServer } from "../../redis/server.ts";
import type { Dispatcher } from "../cluster/dispatcher.ts";
import type { Offer } from "../cluster/work-row.ts";
import { JobLoop } from "./job-loop.ts";
import { jobIdOf, type JobData, queueNameOf, toJob } from "./offer-job.ts";

/** Offers whose existence one round trip checks. */
const CHECKED_AT_ONCE = 1000;
/** BullMQ keeps a stream of events per queue, which nothing here reads. */
const EVENTS = 100;

/** The queue of all processes in BullMQ: one queue per kind. Jobs carry only which work may begin. */
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
    await Promise.all([...ofKind].map(([kind, some]) => queueOf(kind).addBulk(some.map(toJob))));
  };
  let waiting: Offer[] = [];
  let adding: Promise<void> | undefined;
  const flush = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    const batch = waiting;
    [waiting, adding] = [[], undefined];
    await add(batch);
  };

  return {
    offer(offers) {
      if (offers.length === 0) return Promise.resolve();
      waiting.push(...offers);
      return (adding ??= flush());
    },
    async missing(offers) {
      const missing: Offer[] = [];
      for (let from = 0; from < offers.length; from += CHECKED_AT_ONCE) {
        const some = offers.slice(from, from + CHECKED_AT_ONCE);
        const pipeline = redis.commands.pipeline();
        for (const offer of some) pipeline.exists(queueOf(offer.kind).toKey(jobIdOf(offer)));
        const answers = (await pipeline.exec()) ?? [];
        for (const [at, [error, exists]] of answers.entries()) {
          if (error) throw error;
          if (exists === 0) missing.push(some[at]!);
        }
      }
      return missing;
    },
    consume(kind, consumer) {
      const loop = new JobLoop({
        ...{ kind, consumer, fetching, options },
        handBack: (offer) => add([offer]),
      });
      loops.set(kind, loop);
      return () => loop.wake();
    },
    isIdle: (kind) => loops.get(kind)?.isIdle ?? false,
    async close() {
      await Promise.all([...loops.values()].map((loop) => loop.close()));
      await Promise.all([...queues.values()].map((queue) => queue.close().catch(() => {})));
      fetching.disconnect();
    },
  };
}

/** A connection for commands that block, which take longer than the timeout of other commands. BullMQ duplicates it for each kind. */
function connectForFetching(redis: RedisServer): Redis {
  const settings = { maxRetriesPerRequest: null, commandTimeout: undefined, socketTimeout: undefined };
  const connection = redis.connect({ ...settings, connectionName: "portico-engine" });
  // Duplicates are the server's connections, too: their errors are heard from the beginning, and they close with it.
  connection.duplicate = (more) => redis.connect({ ...settings, ...more });
  return connection;
}
