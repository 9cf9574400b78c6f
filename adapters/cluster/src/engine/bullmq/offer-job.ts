import type { BulkJobOptions } from "bullmq";
import type { Offer } from "../cluster/work-row.ts";

/** The contents of a job: offers of the queue's kind. */
export interface JobData {
  readonly offers: readonly Omit<Offer, "kind">[];
}

/** Maximum offers of one job. */
const MOST = 16;
/** A burst of offers is split into at least this many jobs, so that several processes share it: a job goes to one process. */
const SHARES = 4;
const BETWEEN = "+";

/** The name of a kind's queue. BullMQ refuses colons, which separate the parts of its keys. */
export function queueNameOf(kind: string): string {
  return encodeURIComponent(kind);
}

/** One name for a generation of a work. */
export function nameOf({ work, generation }: Pick<Offer, "work" | "generation">): string {
  return `${work}-${generation}`;
}

/** The names of a job's offers. */
export function namesOf(jobId: string): readonly string[] {
  return jobId.split(BETWEEN);
}

/**
 * Offers of one kind as BullMQ adds them: several per job, because a job costs Redis far more than an offer. Work that has executed
 * before comes before work that has not. Ended jobs leave nothing behind.
 */
export function toJobs(offers: readonly Offer[]): { name: string; data: JobData; opts: BulkJobOptions }[] {
  const most = Math.min(MOST, Math.ceil(offers.length / SHARES));
  const { back = [], first = [] } = Object.groupBy(offers, ({ isBack }) => (isBack ? "back" : "first"));
  return [
    // Each is put before those that were added earlier.
    ...chunk(back, most)
      .map((some) => toJob(some, true))
      .reverse(),
    ...chunk(first, most).map((some) => toJob(some, false)),
  ];
}

/** One job. `isFirst`: it comes before all that wait. The job's ID names its offers, so that a list of IDs tells what waits. */
export function toJob(offers: readonly Offer[], isFirst: boolean): { name: string; data: JobData; opts: BulkJobOptions } {
  const opts = { jobId: offers.map(nameOf).join(BETWEEN), removeOnComplete: true, removeOnFail: true, lifo: isFirst };
  return { name: "work", data: { offers: offers.map(({ kind: _kind, ...offer }) => offer) }, opts };
}

function chunk<Item>(items: readonly Item[], most: number): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / most) }, (_, at) => items.slice(at * most, (at + 1) * most));
}
