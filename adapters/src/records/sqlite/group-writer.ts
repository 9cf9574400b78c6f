import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import type { CheckedWrite } from "../create-records.ts";
import { isBusy, toUnavailable } from "./unavailable.ts";

/**
 * Do one write inside the running transaction. Answers `version`, or 0 when there was nothing to remove; throws RecordConflict.
 */
export type Apply = (write: CheckedWrite, version: number) => number;

export interface GroupWriter {
  commit(writes: readonly CheckedWrite[]): Promise<readonly number[]>;
  /** Write what is waiting, at once; nothing is taken afterwards. */
  finish(): void;
}

/** Bounds how long one commit holds the event loop. */
const GROUP_WRITES = 1000;

interface Task {
  readonly writes: readonly CheckedWrite[];
  resolve(versions: readonly number[]): void;
  reject(error: unknown): void;
}

/** How a task ended, told only when the group's commit is known. */
type Outcome = { readonly versions: readonly number[] } | { readonly error: unknown };

/**
 * Collects the writes of one event-loop turn into one transaction: a disk sync costs far more than a row, so fifty writers that
 * share one write fifty times as fast. Every task has its own outcome; all are told after the commit.
 */
export function createGroupWriter(database: DatabaseSync, apply: Apply, attempts: number): GroupWriter {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const rollback = database.prepare("ROLLBACK");
  const savepoint = database.prepare("SAVEPOINT batch");
  const release = database.prepare("RELEASE batch");
  const rollbackBatch = database.prepare("ROLLBACK TO batch");
  const reserve = database.prepare(`UPDATE "_store" SET version = version + ? RETURNING version`);

  const waiting: Task[] = [];
  let scheduled = false;
  let finished = false;
  let failedAttempts = 0;

  /** Write one group. False when another process holds the lock, and the group waits on. */
  const writeGroup = (): boolean => {
    try {
      begin.run();
    } catch (cause) {
      if (isBusy(cause) && ++failedAttempts < attempts) return false;
      failedAttempts = 0;
      const error = toUnavailable("written", cause);
      for (const task of waiting.splice(0)) task.reject(error);
      return true;
    }
    failedAttempts = 0;
    const group = takeGroup(waiting);
    settle(group, runGroup(group));
    return true;
  };

  const runGroup = (group: readonly Task[]): readonly Outcome[] => {
    try {
      const count = group.reduce((sum, task) => sum + task.writes.length, 0);
      // Taken from the store itself, under the lock: other processes count on from here.
      let version = Number(reserve.get(count)?.version) - count;
      const outcomes = group.map((task) => attempt(task.writes, () => ++version));
      // What changed nothing needs no sync.
      const changed = outcomes.some((outcome) => "versions" in outcome && outcome.versions.some((given) => given > 0));
      (changed ? commit : rollback).run();
      return outcomes;
    } catch (cause) {
      if (database.isTransaction) rollback.run();
      const error = toUnavailable("written", cause);
      return group.map(() => ({ error }));
    }
  };

  const attempt = (writes: readonly CheckedWrite[], nextVersion: () => number): Outcome => {
    // SQLite itself undoes a single statement that fails.
    const nested = writes.length > 1;
    if (nested) savepoint.run();
    try {
      const versions = writes.map((write) => apply(write, nextVersion()));
      if (nested) release.run();
      return { versions };
    } catch (cause) {
      // A full or broken disk may have ended the transaction, and with it everybody's writes.
      if (!database.isTransaction) throw cause;
      if (nested) {
        rollbackBatch.run();
        release.run();
      }
      return { error: cause instanceof ports.RecordConflict ? cause : toUnavailable("written", cause) };
    }
  };

  const schedule = (): void => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    // After the turn's input has been handled, so that all its writers are in the group.
    setImmediate(() => {
      scheduled = false;
      if (waiting.length > 0) writeGroup();
      schedule();
    });
  };

  return {
    async commit(writes) {
      if (finished) throw new ports.RecordsUnavailable("The records store is closed");
      if (writes.length === 0) return [];
      return new Promise((resolve, reject) => {
        waiting.push({ writes, resolve, reject });
        schedule();
      });
    },
    finish() {
      finished = true;
      while (waiting.length > 0) writeGroup();
    },
  };
}

function takeGroup(waiting: Task[]): readonly Task[] {
  let writes = 0;
  let tasks = 0;
  for (const task of waiting) {
    writes += task.writes.length;
    // A batch is never split, so that one alone may be larger.
    if (tasks > 0 && writes > GROUP_WRITES) break;
    tasks++;
  }
  return waiting.splice(0, tasks);
}

function settle(group: readonly Task[], outcomes: readonly Outcome[]): void {
  group.forEach((task, at) => {
    const outcome = outcomes[at];
    if (outcome && "versions" in outcome) task.resolve(outcome.versions);
    else task.reject(outcome?.error);
  });
}
