import { setTimeout as wait } from "node:timers/promises";
import { type ports, type TagIndex, writeAgain } from "@portico/core";
import { taggedRun } from "./run-tags.ts";
import type { Run } from "./run.ts";

/** How far the runs of an earlier version were indexed. */
interface Progress {
  /** 1: all runs. 2: those that changed since the first round began, in processes of the earlier version that were still running. */
  readonly round: 1 | 2;
  /** When the first round began, and when it ended (ISO 8601). */
  readonly beganAt: string;
  readonly endedAt?: string | undefined;
  /** The last run that was indexed. */
  readonly after?: string | undefined;
  readonly isDone?: true | undefined;
}

/** How often the indexing is continued where it was interrupted. */
export const RUNS_INDEXING: ports.ChoreOptions = { everyMs: 10 * 60_000, firstMs: 1000 };

const PROGRESS = "runs";
/** Runs of one commit. */
const GROUP = 20;
/** The second round comes after processes of the earlier version have ended. */
const SECOND_ROUND_MS = 60 * 60_000;

export type RunIndexing = ReturnType<typeof createRunIndexing>;

/**
 * Indexes the runs that an earlier version wrote, once, beside all other work: in small commits, with a pause as long as each took. A kill
 * loses the last commit's progress, and nothing else.
 */
export function createRunIndexing({
  records,
  runs,
  tags,
}: {
  readonly records: ports.Records;
  readonly runs: ports.Collection<Run>;
  readonly tags: TagIndex;
}) {
  const kept = records.collection<Progress>({ name: "indexing-progress" });
  let isComplete = false;

  /** With the run itself, so that a change at the same time conflicts. */
  const writesOf = ({ id, value, version }: ports.Stored<Run>): readonly ports.Write[] => [
    runs.write.put(id, value, version),
    ...tags.changes(undefined, taggedRun(value)),
  ];
  const index = async (found: readonly ports.Stored<Run>[]): Promise<void> => {
    for (const { id } of found) {
      await writeAgain(async () => {
        const run = await runs.get(id);
        if (run) await records.batch(writesOf(run));
      });
    }
  };
  /** One page. Returns the progress after it. */
  const step = async (progress: Progress, now: string): Promise<Progress> => {
    const { items, next } = await runs.query({
      limit: GROUP,
      ...(progress.after !== undefined && { after: { value: null, id: progress.after } }),
    });
    const wanted = progress.round === 1 ? items : items.filter(({ value }) => (value.updatedAt ?? "") >= progress.beganAt);
    const { after: _after, ...round } = progress;
    const done = progress.round === 1 ? { ...round, endedAt: now } : { ...round, isDone: true as const };
    const reached = next === undefined ? done : { ...round, after: items.at(-1)!.id };
    const noted = kept.write.put(PROGRESS, reached);
    try {
      await records.batch([...wanted.flatMap(writesOf), noted]);
    } catch (error) {
      if (!(error instanceof Error) || error.name !== "RecordConflict") throw error;
      await index(wanted);
      await records.batch([noted]);
    }
    return reached;
  };

  return {
    /** A store without runs has nothing to index, and says so from its first start on. */
    async prepare(now: number): Promise<void> {
      if ((await kept.get(PROGRESS)) || (await runs.query({ limit: 1 })).items.length > 0) return;
      const beganAt = new Date(now).toISOString();
      await kept.put(PROGRESS, { round: 1, beganAt, endedAt: beganAt, isDone: true });
    },
    /** Whether searches find every run. */
    async isComplete(): Promise<boolean> {
      isComplete ||= (await kept.get(PROGRESS))?.value.endedAt !== undefined;
      return isComplete;
    },
    /** Indexes the runs that are not indexed yet. Called repeatedly, in any process. */
    async run(now: () => number, signal: AbortSignal): Promise<void> {
      const at = () => new Date(now()).toISOString();
      let progress = (await kept.get(PROGRESS))?.value ?? { round: 1, beganAt: at() };
      while (!progress.isDone && !signal.aborted) {
        if (progress.round === 1 && progress.endedAt !== undefined) {
          if (now() < Date.parse(progress.endedAt) + SECOND_ROUND_MS) return;
          progress = { ...progress, round: 2 };
        }
        const begun = performance.now();
        progress = await step(progress, at());
        await wait(performance.now() - begun, undefined, { signal }).catch(() => {});
      }
    },
  };
}
