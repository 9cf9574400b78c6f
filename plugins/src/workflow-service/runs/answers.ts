import { ports, readPages } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import type { SensitivePaths } from "../secrecy/sensitive-paths.ts";
import { type Hidden, runContext, type SecretKeeper } from "../secrecy/secret-keeper.ts";

/** An answer that counts from now on. */
export interface GivenAnswer {
  /** The parts that are always stored in plain form. */
  readonly open: object;
  /** The parts that may contain secrets. */
  readonly given: object;
  /** The secret places of `given`. */
  readonly sensitive?: SensitivePaths | undefined;
  /** Records who answered, in the commit of the answer. */
  readonly audited?: {
    readonly audit: ports.Audit;
    readonly who: ports.AuditActor;
    readonly action: string;
    readonly object: string;
  };
}

export type Answers = ReturnType<typeof createAnswers>;

/**
 * The answers from outside for which nodes of runs wait: the decisions of gates and the events of callbacks. Each has the name of the signal
 * that wakes its run up. The first answer counts. Functions throw RecordsUnavailable and SealingUnavailable.
 */
export function createAnswers(records: ports.Records, keeper: SecretKeeper) {
  const answers = records.collection<{ readonly hidden?: Hidden | undefined }>({ name: "workflow-gates" });
  const keyOf = (runId: string, signal: string) => `${runId}:${signal}`;

  /** The kind of the signal determines the type of its answer. */
  const find = async <T extends object>(runId: string, signal: string): Promise<T | undefined> => {
    const stored = (await answers.get(keyOf(runId, signal)))?.value;
    if (!stored) return undefined;
    const { hidden, ...value } = stored;
    return (await keeper.open(runContext(runId), { value, hidden })).value as T;
  };

  return {
    find,
    /** Stores the answer. Returns the earlier answer if there is one: then this answer is not stored. */
    async give<T extends object>(
      runId: string,
      signal: string,
      { open, given, sensitive, audited }: GivenAnswer,
    ): Promise<T | undefined> {
      const { value, hidden } = await keeper.toStored(runContext(runId), given, { sensitive });
      const write = answers.write.put(keyOf(runId, signal), { ...value, ...open, ...(hidden && { hidden }) }, "absent");
      try {
        if (!audited) await records.batch([write]);
        else {
          const { audit, who, action, object } = audited;
          await audit.record({ action, object, who }, [write]);
        }
        return undefined;
      } catch (error) {
        const earlier = error instanceof ports.RecordConflict ? await find<T>(runId, signal) : undefined;
        if (!earlier) throw error;
        return earlier;
      }
    },
    /** Adds a fact to an answer. Without effect if the answer is gone, or another process adds one at the same time. */
    async note(runId: string, signal: string, fact: object): Promise<void> {
      const found = await answers.get(keyOf(runId, signal));
      if (!found) return;
      await answers.put(found.id, { ...found.value, ...fact }, found.version).catch(undefinedAtConflict);
    },
    /** Forget the answers of runs that ended without coming to them again; normally a run's end forgets them. */
    async sweep(isOver: (runId: string) => Promise<boolean>, closing: AbortSignal): Promise<void> {
      for await (const items of readPages(answers, {})) {
        for (const { id } of items) {
          if (closing.aborted) return;
          if (await isOver(id.slice(0, id.indexOf(":")))) await answers.remove(id);
        }
      }
    },
    /** The node no longer needs its answer. */
    forget: (runId: string, signal: string): ports.Write => answers.write.remove(keyOf(runId, signal)),
  };
}
