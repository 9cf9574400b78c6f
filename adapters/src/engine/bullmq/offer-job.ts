import type { BulkJobOptions } from "bullmq";
import type { Offer } from "../cluster/work-row.ts";

/** What a job carries: an offer without its kind, which is the queue's. */
export type JobData = Omit<Offer, "kind">;

/** The name of a kind's queue. BullMQ refuses colons, which separate the parts of its keys. */
export function queueNameOf(kind: string): string {
  return encodeURIComponent(kind);
}

/** Two offers of one generation are one job. */
export function jobIdOf({ work, generation }: Pick<Offer, "work" | "generation">): string {
  return `${work}-${generation}`;
}

/** An offer as BullMQ adds it. Ended jobs leave nothing behind. */
export function toJob({ kind: _kind, ...data }: Offer): { name: string; data: JobData; opts: BulkJobOptions } {
  const opts = { jobId: jobIdOf(data), removeOnComplete: true, removeOnFail: true, lifo: data.isBack };
  return { name: "work", data, opts };
}
