import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import type { CheckedWrite } from "../create-records.ts";
import { type DiskSync, takeOverSync } from "./disk-sync.ts";
import { isBusy, toUnavailable } from "./unavailable.ts";

/**
 * Perform one write inside the running transaction. Returns `version`, or 0 if it changed nothing: there was no record to remove,
 * or it is only a condition. Throws RecordConflict.
 */
export type Apply = (write: CheckedWrite, version: number) => number;

export interface GroupWriter {
  commit(writes: readonly CheckedWrite[]): Promise<readonly number[]>;
  /**
   * Run `work`, with its own statements, in the shared transaction of this turn. It succeeds or fails as a whole, independently
   * of other writers. The given record writes are performed where `work` calls `write`. It may run a second time, after the first
   * run was rolled back. Rejects as `commit` does.
   */
  transact<T>(work: (write: () => void) => T, writes: readonly CheckedWrite[]): Promise<T>;
  /** Counts the transactions that began. */
  transaction(): number;
  /** Write waiting changes at once. No changes are accepted afterwards. */
  finish(): void;
}

/** Limits how long one commit blocks the event loop. */
const GROUP_WRITES = 1000;

/**
 * If this many tasks shared the last commit, many writers are active. Most of the writers that it answered write again one turn
 * later, and a sync is too expensive without them.
 */
const BUSY_GROUP = 4;

/** The part of a task inside the transaction. `write` performs its record writes and returns their versions. */
type Work = (write: () => readonly number[]) => Done;

interface Done {
  readonly result: unknown;
  readonly changed: boolean;
}

interface Task {
  readonly writes: readonly CheckedWrite[];
  readonly work: Work;
  /** Whether it has more than one statement, so that a failure in the middle must be undone. */
  readonly nested: boolean;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** The result of a task, reported only after the group's commit. */
type Outcome = Done | { readonly error: unknown };

/**
 * Runs a task inside the transaction; `nextVersion` counts. Undefined if a part of it took effect and cannot be undone alone. Throws
 * if the transaction is gone.
 */
type Attempt = (task: Task, nextVersion: () => number) => Outcome | undefined;

/**
 * Collects the writes of one event-loop turn into one transaction. A disk sync costs far more than a row, so fifty writers that
 * share one write fifty times as fast. Every task has its own result, reported when the commit is on the disk. During a sync, the
 * next groups are committed, and then share the next sync.
 */
export function createGroupWriter(database: DatabaseSync, apply: Apply, attempts: number): GroupWriter {
  const disk = takeOverSync(database);
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
  let lastGroup = 0;
  let transactions = 0;
  let isSyncing = false;
  let isCareful = false;
  /** The store's version after the last commit. */
  let committed = 0;
  const unsynced: ((error?: unknown) => void)[] = [];

  /** Write one group. False if it must wait again: another process holds the lock, or one task must be undone separately. */
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
    transactions++;
    const group = takeGroup(waiting);
    lastGroup = group.length;
    const done = runGroup(group);
    if (!done) {
      waiting.unshift(...group);
      return false;
    }
    const { outcomes, isCommitted } = done;
    const tell = (error?: unknown) => settle(group, error === undefined ? outcomes : group.map(() => ({ error })));
    // A group without changes needs no sync, unless it may depend on commits whose sync is not finished.
    if (!disk || (!isCommitted && !isSyncing)) tell();
    else {
      unsynced.push(tell);
      if (!isSyncing) sync(disk);
    }
    return true;
  };

  /** Reports the commits from before the sync. Later commits share the next sync. */
  const sync = (on: DiskSync): void => {
    const telling = unsynced.splice(0);
    isSyncing = true;
    on.start(committed, (cause) => {
      isSyncing = false;
      if (unsynced.length > 0) sync(on);
      const error = cause === undefined ? undefined : toUnavailable("written", cause);
      for (const tell of telling) tell(error);
    });
  };

  /** Undefined if it must be tried again with care. No part of it took effect then. */
  const runGroup = (
    group: readonly Task[],
  ): { readonly outcomes: readonly Outcome[]; readonly isCommitted: boolean } | undefined => {
    try {
      // Nearly all tasks succeed, and savepoints cost a tenth of a group. They are used only after a task has failed in the
      // middle.
      const done = tryGroup(group, isCareful ? undoably : plainly);
      isCareful = !done;
      if (!done) rollback.run();
      return done;
    } catch (cause) {
      if (database.isTransaction) rollback.run();
      const error = toUnavailable("written", cause);
      return { outcomes: group.map(() => ({ error })), isCommitted: false };
    }
  };

  /** Undefined if the partial effect of a task cannot be undone separately. */
  const tryGroup = (group: readonly Task[], attempt: Attempt) => {
    const count = group.reduce((sum, task) => sum + task.writes.length, 0);
    // Read from the store itself, under the lock, because other processes continue from here. A group without records counts as one:
    // the mark next to the file then shows that it exists.
    const last = Number(reserve.get(Math.max(1, count))?.version);
    let version = last - count;
    const outcomes: Outcome[] = [];
    for (const task of group) {
      const outcome = attempt(task, () => ++version);
      if (!outcome) return undefined;
      outcomes.push(outcome);
    }
    // A group without changes is rolled back, so that it needs no sync.
    const isCommitted = outcomes.some((outcome) => "changed" in outcome && outcome.changed);
    (isCommitted ? commit : rollback).run();
    if (isCommitted) committed = last;
    return { outcomes, isCommitted };
  };

  const perform = ({ writes, work }: Task, nextVersion: () => number): Outcome => {
    try {
      return work(() => writes.map((write) => apply(write, nextVersion())));
    } catch (cause) {
      // A full or broken disk may have ended the transaction, and with it all writes of the group.
      if (!database.isTransaction) throw cause;
      return { error: cause instanceof ports.RecordConflict ? cause : toUnavailable("written", cause) };
    }
  };

  const plainly: Attempt = (task, nextVersion) => {
    const outcome = perform(task, nextVersion);
    // SQLite itself undoes a single statement that fails.
    return task.nested && "error" in outcome ? undefined : outcome;
  };

  const undoably: Attempt = (task, nextVersion) => {
    if (!task.nested) return perform(task, nextVersion);
    savepoint.run();
    const outcome = perform(task, nextVersion);
    if ("error" in outcome) rollbackBatch.run();
    release.run();
    return outcome;
  };

  const schedule = (): void => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    // After the turn's input has been handled, so that all its writers are in the group.
    setImmediate(lastGroup >= BUSY_GROUP ? waitTurn : write);
  };

  const write = (): void => {
    scheduled = false;
    if (waiting.length > 0) writeGroup();
    schedule();
  };
  const waitTurn = (): void => void setImmediate(write);

  const enqueue = <T>(writes: readonly CheckedWrite[], nested: boolean, work: Work): Promise<T> => {
    return new Promise((resolve, reject) => {
      if (finished) throw new ports.RecordsUnavailable("The records store is closed");
      waiting.push({ writes, work, nested, resolve: (result) => resolve(result as T), reject });
      schedule();
    });
  };

  return {
    async commit(writes) {
      // A closed store refuses an empty batch, too.
      if (writes.length === 0 && !finished) return [];
      return enqueue(writes, writes.length > 1, (write) => {
        const versions = write();
        return { result: versions, changed: versions.some((given) => given > 0) };
      });
    },
    transact: (work, writes) => enqueue(writes, true, (write) => ({ result: work(write), changed: true })),
    transaction: () => transactions,
    finish() {
      finished = true;
      while (waiting.length > 0) writeGroup();
      if (!disk) return;
      try {
        if (unsynced.length > 0) disk.wait(committed);
        for (const tell of unsynced.splice(0)) tell();
      } catch (cause) {
        for (const tell of unsynced.splice(0)) tell(toUnavailable("written", cause));
      } finally {
        disk.close();
      }
    },
  };
}

function takeGroup(waiting: Task[]): readonly Task[] {
  let writes = 0;
  let tasks = 0;
  for (const task of waiting) {
    // A task with its own rows counts as at least one write.
    writes += Math.max(1, task.writes.length);
    // A batch is never split, so a single batch may exceed the limit.
    if (tasks > 0 && writes > GROUP_WRITES) break;
    tasks++;
  }
  return waiting.splice(0, tasks);
}

function settle(group: readonly Task[], outcomes: readonly Outcome[]): void {
  group.forEach((task, at) => {
    const outcome = outcomes[at];
    if (outcome && "changed" in outcome) task.resolve(outcome.result);
    else task.reject(outcome?.error);
  });
}
