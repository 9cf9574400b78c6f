import { ports } from "@portico/core";
import type { Connections, PoolClient } from "./connections.ts";
import type { Locks } from "./locks.ts";
import { isRefused, toUnavailable } from "./unavailable.ts";

/**
 * One kind of rows, and how a group's transaction changes them. The affected rows are read once, each change is applied in
 * memory, in order, and the result is written once.
 */
export interface Part<Change> {
  /** Resolves when the tables that the changes need exist. Undefined if they are known to exist. */
  ready(changes: readonly Change[]): Promise<unknown> | undefined;
  /** Lock names for the rows of a change: only one process at a time changes rows under these names. */
  lockNames(change: Change): readonly string[];
  /** Number of characters that a change writes. */
  size(change: Change): number;
  load(client: PoolClient, changes: readonly Change[]): Promise<Loaded<Change>>;
}

export interface Loaded<Change> {
  /** Returns a number that the part defines, and pushes its undo. Throws RecordConflict, without any effect. */
  apply(change: Change, undo: (() => void)[]): number;
  write(): Promise<void>;
}

/** Changes of one part. */
export interface PartChanges<Change = any> {
  readonly part: Part<Change>;
  readonly changes: readonly Change[];
}

export interface GroupWriter {
  /**
   * Commit changes that succeed or fail together, independently of other changes. Changes of one process take effect in the order
   * of the calls. Returns the result of each change. Rejects with RecordConflict or RecordsUnavailable.
   */
  commit(parts: readonly PartChanges[]): Promise<readonly number[]>;
  /** Write waiting changes. No changes are accepted afterwards. */
  finish(): Promise<void>;
}

/** Limits the duration of one transaction, and the data sent at once. */
const GROUP_CHANGES = 256;
const GROUP_CHARACTERS = 8 * 1024 * 1024;

interface Task {
  readonly parts: readonly PartChanges[];
  resolve(results: readonly number[]): void;
  reject(error: unknown): void;
}

type Outcome = { readonly results: readonly number[] } | { readonly error: unknown };

/**
 * Collects the writes of one event-loop turn, and those that arrive during a running transaction, into one transaction, with one
 * statement for all deleted and one for all written rows of a table: a commit costs far more than a row. All writers are answered
 * after the commit.
 */
export function createGroupWriter(connections: Connections, locks: Locks): GroupWriter {
  const waiting: Task[] = [];
  let writing: Promise<void> | undefined;
  let finished = false;

  const writeAll = async (): Promise<void> => {
    // After the turn's input has been handled, so that all its writers are in the group.
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) await writeGroup(await withTables(takeGroup(waiting)));
    writing = undefined;
  };

  const writeGroup = async (group: readonly Task[]): Promise<void> => {
    if (group.length === 0) return;
    try {
      const outcomes = await runGroup(group);
      group.forEach((task, at) => settle(task, outcomes[at]!));
    } catch (cause) {
      if (group.length > 1 && isRefused(cause)) {
        // Nothing was written. Then each task runs alone, so that only a task that cannot succeed (for example without its table)
        // fails.
        for (const task of group) await writeGroup([task]);
        return;
      }
      const error = toUnavailable("written", cause);
      for (const task of group) task.reject(error);
    }
  };

  const runGroup = async (group: readonly Task[]): Promise<readonly Outcome[]> => {
    const parts = gather(group);
    const names = [...parts].flatMap(([part, changes]) => changes.flatMap((change) => part.lockNames(change)));
    // Later reads see every commit from before the locks were acquired, because every statement takes its own snapshot.
    const client = await connections.take(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${locks.writers(names)}`);
    try {
      const loaded = new Map<Part<unknown>, Loaded<unknown>>();
      for (const [part, changes] of parts) loaded.set(part, await part.load(client, changes));
      const outcomes = group.map((task) => attempt(task, loaded));
      for (const each of loaded.values()) await each.write();
      await client.query("COMMIT");
      client.release();
      return outcomes;
    } catch (error) {
      client.release(true);
      throw error;
    }
  };

  return {
    async commit(parts) {
      if (finished) throw new ports.RecordsUnavailable("The records store is closed");
      if (parts.every(({ changes }) => changes.length === 0)) return [];
      return new Promise((resolve, reject) => {
        waiting.push({ parts, resolve, reject });
        writing ??= writeAll();
      });
    },
    async finish() {
      finished = true;
      await writing;
    },
  };
}

/** The tasks whose tables exist. The others have failed. */
async function withTables(group: readonly Task[]): Promise<readonly Task[]> {
  const able: Task[] = [];
  for (const task of group) {
    try {
      for (const { part, changes } of task.parts) await part.ready(changes);
      able.push(task);
    } catch (error) {
      task.reject(error);
    }
  }
  return able;
}

function gather(group: readonly Task[]): ReadonlyMap<Part<unknown>, readonly unknown[]> {
  const gathered = new Map<Part<unknown>, unknown[]>();
  for (const { part, changes } of group.flatMap((task) => task.parts)) {
    const all = gathered.get(part) ?? [];
    gathered.set(part, all);
    for (const change of changes) all.push(change);
  }
  return gathered;
}

function attempt(task: Task, loaded: ReadonlyMap<Part<unknown>, Loaded<unknown>>): Outcome {
  const undo: (() => void)[] = [];
  try {
    return {
      results: task.parts.flatMap(({ part, changes }) => changes.map((change) => loaded.get(part)!.apply(change, undo))),
    };
  } catch (error) {
    for (const step of undo.reverse()) step();
    return { error };
  }
}

function takeGroup(waiting: Task[]): readonly Task[] {
  let changes = 0;
  let characters = 0;
  let tasks = 0;
  for (const task of waiting) {
    for (const each of task.parts) {
      changes += each.changes.length;
      for (const change of each.changes) characters += each.part.size(change);
    }
    // A task is never split, so a single task may exceed the limits.
    if (tasks > 0 && (changes > GROUP_CHANGES || characters > GROUP_CHARACTERS)) break;
    tasks++;
  }
  return waiting.splice(0, tasks);
}

function settle(task: Task, outcome: Outcome): void {
  if ("results" in outcome) task.resolve(outcome.results);
  else task.reject(outcome.error);
}
