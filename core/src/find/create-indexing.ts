import { setTimeout as wait } from "node:timers/promises";
import type { ChoreOptions } from "../ports/engine.ts";
import { type Collection, RecordConflict, type Records, type Stored, type Write } from "../ports/records.ts";
import { writeAgain } from "../write-again.ts";

/** How far the subjects of an earlier version were indexed. */
interface Progress {
  /** 1: all subjects. 2: those that changed since the first round began, in processes of the earlier version that were still running. */
  readonly round: 1 | 2;
  /** When the first round began, and when it ended (ISO 8601). */
  readonly beganAt: string;
  readonly endedAt?: string | undefined;
  /** The last subject that was indexed. */
  readonly after?: string | undefined;
  readonly isDone?: true | undefined;
}

/** How often the indexing is continued where it was interrupted. */
export const INDEXING_CHORE: ChoreOptions = { everyMs: 10 * 60_000, firstMs: 1000 };

/** Subjects of one commit. */
const GROUP = 20;
/** The second round comes after processes of the earlier version have ended. */
const SECOND_ROUND_MS = 60 * 60_000;

/** Indexes the subjects that an earlier version wrote. */
export interface Indexing {
  /** A store without subjects has nothing to index, and records this at its first start. Call it when the store is opened. */
  prepare(now: number): Promise<void>;
  /** Whether searches find every subject. */
  isComplete(): Promise<boolean>;
  /** Indexes the subjects that are not indexed yet. Called repeatedly, in any process. */
  run(now: () => number, signal: AbortSignal): Promise<void>;
}

/**
 * Indexes the subjects that an earlier version wrote, once, beside all other work: in small commits, with a pause as long as each took. A kill
 * loses the last commit's progress, and nothing else.
 */
export function createIndexing<T extends object>({
  records,
  name,
  subjects,
  writesOf,
  mayHaveChanged,
}: {
  readonly records: Records;
  /** The subjects' name in the collection of progress. */
  readonly name: string;
  readonly subjects: Collection<T>;
  /** The writes that index a subject, and make a change of it at the same time conflict. They may be repeated. */
  readonly writesOf: (subject: Stored<T>) => readonly Write[];
  /** Whether a subject may have changed at this time or later (ISO 8601). */
  readonly mayHaveChanged: (subject: T, since: string) => boolean;
}): Indexing {
  const kept = records.collection<Progress>({ name: "indexing-progress" });
  let isComplete = false;

  const index = async (found: readonly Stored<T>[]): Promise<void> => {
    for (const { id } of found) {
      await writeAgain(async () => {
        const subject = await subjects.get(id);
        if (subject) await records.batch(writesOf(subject));
      });
    }
  };
  /** One page. Returns the progress after it. */
  const step = async (progress: Progress, now: string): Promise<Progress> => {
    const { items, next } = await subjects.query({
      limit: GROUP,
      ...(progress.after !== undefined && { after: { value: null, id: progress.after } }),
    });
    const wanted = progress.round === 1 ? items : items.filter(({ value }) => mayHaveChanged(value, progress.beganAt));
    const { after: _after, ...round } = progress;
    const done = progress.round === 1 ? { ...round, endedAt: now } : { ...round, isDone: true as const };
    const reached = next === undefined ? done : { ...round, after: items.at(-1)!.id };
    const noted = kept.write.put(name, reached);
    try {
      await records.batch([...wanted.flatMap(writesOf), noted]);
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      await index(wanted);
      await records.batch([noted]);
    }
    return reached;
  };

  return {
    async prepare(now) {
      if ((await kept.get(name)) || (await subjects.query({ limit: 1 })).items.length > 0) return;
      const beganAt = new Date(now).toISOString();
      await kept.put(name, { round: 1, beganAt, endedAt: beganAt, isDone: true });
    },
    async isComplete() {
      isComplete ||= (await kept.get(name))?.value.endedAt !== undefined;
      return isComplete;
    },
    async run(now, signal) {
      const at = () => new Date(now()).toISOString();
      let progress = (await kept.get(name))?.value ?? { round: 1, beganAt: at() };
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
