import type { DatabaseSync } from "node:sqlite";
import { ports } from "@portico/core";
import type { CheckedWrite } from "../create-records.ts";
import { type DiskSync, takeOverSync } from "./disk-sync.ts";
import { isBusy, toUnavailable } from "./unavailable.ts";

/**
 * Do one write inside the running transaction. Answers `version`, or 0 when there was nothing to remove; throws RecordConflict.
 */
export type Apply = (write: CheckedWrite, version: number) => number;

export interface GroupWriter {
  commit(writes: readonly CheckedWrite[]): Promise<readonly number[]>;
  /**
   * Do `work`, with statements of its own, in the transaction that this turn's writers share: whole or not at all, whatever becomes of
   * theirs. The given record writes are done where `work` calls `write`. It may be run a second time, when nothing of the first is left.
   * Rejects as `commit` does.
   */
  transact<T>(work: (write: () => void) => T, writes: readonly CheckedWrite[]): Promise<T>;
  /** Counts the transactions that began. */
  transaction(): number;
  /** Write what is waiting, at once; nothing is taken afterwards. */
  finish(): void;
}

/** Bounds how long one commit holds the event loop. */
const GROUP_WRITES = 1000;

/**
 * Where this many shared the last commit, many write at once: most of those that it answered come again one turn later, and a sync is too
 * dear to be done without them.
 */
const BUSY_GROUP = 4;

/** What a task does inside the transaction; `write` does its record writes and answers their versions. */
type Work = (write: () => readonly number[]) => Done;

interface Done {
  readonly result: unknown;
  readonly changed: boolean;
}

interface Task {
  readonly writes: readonly CheckedWrite[];
  readonly work: Work;
  /** Whether it takes more than one statement, so that failing half-way leaves something to undo. */
  readonly nested: boolean;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** How a task ended, told only when the group's commit is known. */
type Outcome = Done | { readonly error: unknown };

/** Does a task inside the transaction; `nextVersion` counts. Throws where the transaction is gone. */
type Attempt = (task: Task, nextVersion: () => number) => Outcome | undefined;

/**
 * Collects the writes of one event-loop turn into one transaction: a disk sync costs far more than a row, so fifty writers that
 * share one write fifty times as fast. Every task has its own outcome; all are told when the commit is on the disk. While it is on its way
 * there, the next groups are committed, and then share the next sync.
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
  const unsynced: ((error?: unknown) => void)[] = [];

  /** Write one group. False when it waits on: another process holds the lock, or one of it has to be undone alone. */
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
    // What changed nothing has nothing to be synced, though it may rest on what is on its way to the disk.
    if (!disk || (!isCommitted && !isSyncing)) tell();
    else {
      unsynced.push(tell);
      if (!isSyncing) sync(disk);
    }
    return true;
  };

  /** Tells those whose commits stood before the sync began; those that came since share the next. */
  const sync = (on: DiskSync): void => {
    const telling = unsynced.splice(0);
    isSyncing = true;
    on.start((cause) => {
      isSyncing = false;
      if (unsynced.length > 0) sync(on);
      const error = cause === undefined ? undefined : toUnavailable("written", cause);
      for (const tell of telling) tell(error);
    });
  };

  /** Undefined where it has to be tried again with care; nothing of it was done then. */
  const runGroup = (
    group: readonly Task[],
  ): { readonly outcomes: readonly Outcome[]; readonly isCommitted: boolean } | undefined => {
    try {
      // Nearly all succeed, and what undoes one of them alone costs a tenth of a group: it is had where one has failed half-way.
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

  /** Undefined where what a task left half-done cannot be undone alone. */
  const tryGroup = (group: readonly Task[], attempt: Attempt) => {
    const count = group.reduce((sum, task) => sum + task.writes.length, 0);
    // Taken from the store itself, under the lock: other processes count on from here.
    let version = count > 0 ? Number(reserve.get(count)?.version) - count : 0;
    const outcomes: Outcome[] = [];
    for (const task of group) {
      const outcome = attempt(task, () => ++version);
      if (!outcome) return undefined;
      outcomes.push(outcome);
    }
    // What changed nothing needs no sync.
    const isCommitted = outcomes.some((outcome) => "changed" in outcome && outcome.changed);
    (isCommitted ? commit : rollback).run();
    return { outcomes, isCommitted };
  };

  const perform = ({ writes, work }: Task, nextVersion: () => number): Outcome => {
    try {
      return work(() => writes.map((write) => apply(write, nextVersion())));
    } catch (cause) {
      // A full or broken disk may have ended the transaction, and with it everybody's writes.
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
      // An empty batch, too, is refused by a closed store.
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
        if (unsynced.length > 0) disk.wait();
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
    // One that writes rows of its own counts as one write at least.
    writes += Math.max(1, task.writes.length);
    // A batch is never split, so that one alone may be larger.
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
