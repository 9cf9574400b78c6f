import type { ports } from "@portico/core";
import { LEDGER_BYTES, LEDGER_CHUNK_BYTES } from "../contracts/limits.ts";
import { type LedgerChunk, type LedgerEntry, ledgerStream, type NodeStarted } from "./ledger-entry.ts";

/** The callbacks for changes of a ledger. */
export interface LedgerListener {
  /** An entry was added that is not written yet. */
  added?(): void;
  /** Entries were written, or nothing comes any more. */
  written?(): void;
}

/** An entry, and the number of entries before it. */
export interface LocatedEntry {
  readonly position: number;
  readonly entry: LedgerEntry;
}

/**
 * The history of one run while this process works on it: the entries in the log, and after them the entries that are not written yet.
 * Readers read both at their own pace, without a cost for others. Entries that are lost with the process are created again when the run is
 * resumed, so only the end waits for the disk.
 */
export class Ledger {
  readonly runId: string;
  readonly #log: ports.EventLog;
  readonly #listener: LedgerListener;
  /** The condition of every write, because an execution may lose the run to another process. */
  #held: readonly ports.Write[] = [];
  /** Tells other processes how many nodes have completed. */
  #completed: (() => number) | undefined;
  /** How many entries the log has. */
  #written = 0;
  /** The last sequence of the log that `recall` and `refresh` have read. */
  #read = 0;
  #tail: { readonly entry: LedgerEntry; readonly bytes: number }[] = [];
  #tailBytes = 0;
  /** Counts how often entries were dropped that readers may have seen before they were written. */
  #drops = 0;
  /** Operations on its state in the log, one after another. */
  #turns: Promise<unknown> = Promise.resolve();
  #isEnded = false;
  /** The entries of an earlier execution, and the start times of its nodes: a resumed run reaches all of them again. */
  #known: Map<string, string | undefined> | undefined;
  #recalling: Promise<void> | undefined;
  /** The nodes that have started and not ended, as far as the log and this process know. */
  readonly #begun = new Map<string, NodeStarted>();
  readonly #waiting = new Set<() => void>();

  constructor(log: ports.EventLog, runId: string, listener: LedgerListener = {}) {
    this.#log = log;
    this.runId = runId;
    this.#listener = listener;
  }

  /**
   * An execution that other processes may follow begins to write: `held` is its condition (WorkContext.held), and `completed` counts its
   * completed nodes. Another process may have written since the last recall, so `begin` or `recall` must follow.
   */
  take(held: ports.Write, completed: () => number): void {
    this.give();
    this.#held = [held];
    this.#completed = completed;
    this.#known = undefined;
    this.#recalling = undefined;
    this.#begun.clear();
  }

  /** The execution stops before the run has ended. Another process may continue it: the entries that were not written come again there. */
  give(): void {
    if (this.#tail.length === 0) return;
    this.#tail = [];
    this.#tailBytes = 0;
    this.#drops++;
  }

  /** Learn what another process has written since. Only for runs that this process does not execute. Throws LogUnavailable. */
  refresh(): Promise<void> {
    return this.#inTurn(async () => {
      const options = { from: this.#read + 1 };
      for await (const { from, entries, sequence } of readChunks(this.#log, this.runId, options)) {
        this.#read = sequence;
        this.#written = Math.max(this.#written, from + entries.length);
      }
      this.#wake();
    });
  }

  /** To be called before anything is added to the ledger of a run that is executed for the first time, and is not executed again by this process. */
  begin(): void {
    this.#recalling ??= Promise.resolve();
  }

  /**
   * Must be called before entries are added to, or read from, the ledger of a run that may have started before: existing entries are not added
   * twice. Throws LogUnavailable, and can then be called again.
   */
  recall(): Promise<void> {
    this.#recalling ??= this.#inTurn(() => this.#recall()).catch((error: unknown) => {
      this.#recalling = undefined;
      throw error;
    });
    return this.#recalling;
  }

  /** Adds the start of a node. Returns when it was first started, which may have been in an earlier execution. */
  start(entry: NodeStarted): string {
    this.add(entry);
    return this.#known?.get(keyOf(entry)) ?? entry.at;
  }

  add(entry: LedgerEntry): void {
    if (this.#known?.has(keyOf(entry))) return;
    this.#known?.set(keyOf(entry), startOf(entry));
    this.#noteBegun(entry);
    const held = fitted(entry);
    this.#tail.push(held);
    this.#tailBytes += held.bytes;
    this.#wake();
    this.#listener.added?.();
  }

  /**
   * To be called before a run ends, at this time in milliseconds since 1970. An earlier execution may have started nodes inside a `map` or `loop`
   * that this one did not reach, because the run was cancelled or failed before. They are cancelled, too.
   */
  cancelBegun(at: number): void {
    for (const { nodeId, type, name, at: startedAt } of [...this.#begun.values()]) {
      const durationMs = Math.max(0, at - Date.parse(startedAt));
      const times = { startedAt, completedAt: new Date(at).toISOString(), durationMs };
      this.add({ kind: "end", nodeId, type, name, status: "cancelled", attempts: 1, ...times });
    }
  }

  /** Resolves when there is room for more entries: the number of unwritten entries is limited. Throws LogUnavailable. */
  async room(): Promise<void> {
    if (this.#tailBytes >= LEDGER_BYTES) await this.write();
  }

  /** Write down what is not written yet. Throws LogUnavailable. */
  write(): Promise<void> {
    return this.#inTurn(async () => {
      while (this.#tail.length > 0) await this.#writeChunk();
    });
  }

  /** Where other processes read the run: they see what was added until now before they see what the record says next. Throws LogUnavailable. */
  async show(): Promise<void> {
    if (this.#completed) await this.write();
  }

  /** Write the last entries and the run's end, in one commit. Throws LogUnavailable, RecordsUnavailable and RecordConflict. */
  end(records: readonly ports.Write[], finalOutputs: unknown): Promise<void> {
    return this.#inTurn(async () => {
      while (this.#tailBytes > LEDGER_CHUNK_BYTES) await this.#writeChunk();
      const chunk = this.#chunk();
      const last: LedgerChunk = { ...chunk, ...(finalOutputs !== undefined && { finalOutputs }) };
      await this.#log.appendAll([{ stream: ledgerStream(this.runId), entry: last }], { records: [...this.#held, ...records] });
      this.#forget(chunk.entries.length);
      this.close();
    });
  }

  /** No more entries follow: readers that have read everything end. */
  close(): void {
    this.#isEnded = true;
    this.#wake();
    this.#listener.written?.();
  }

  /** How many entries there are. `isStored`: in the log. */
  count({ isStored }: { readonly isStored: boolean }): number {
    return isStored ? this.#written : this.#written + this.#tail.length;
  }

  /**
   * The entries from the position `from` (0) on, and then, with `follow`, those that come until the end. An entry in the log keeps its position.
   * `isStored`: entries are read only when they are in the log. Throws LogUnavailable and the signal's reason.
   */
  async *read({
    from = 0,
    follow = false,
    isStored = false,
    signal,
  }: {
    readonly from?: number;
    readonly follow?: boolean;
    readonly isStored?: boolean;
    readonly signal?: AbortSignal;
  }): AsyncGenerator<LocatedEntry, void> {
    let next = from;
    let sequence = 1;
    for (;;) {
      signal?.throwIfAborted();
      const written = this.#written;
      if (next < written) {
        for await (const chunk of readChunks(this.#log, this.runId, { from: sequence, ...(signal && { signal }) })) {
          sequence = chunk.sequence + 1;
          // A chunk whose write got no response may be stored twice.
          next = Math.max(next, chunk.from);
          for (const entry of chunk.entries.slice(next - chunk.from)) yield { position: next++, entry };
        }
        // A damaged entry cannot be read. The entries after it can.
        next = Math.max(next, written);
        continue;
      }
      const held = isStored ? [] : this.#tail.slice(next - written);
      for (const { entry } of held) yield { position: next++, entry };
      if (!follow) return;
      if (held.length > 0) continue;
      if (this.#isEnded) return;
      await this.#change(signal);
    }
  }

  async #recall(): Promise<void> {
    const known = new Map<string, string | undefined>();
    const know = (entry: LedgerEntry): void => {
      const key = keyOf(entry);
      // A chunk whose write got no response may be stored twice.
      if (!known.has(key)) this.#noteBegun(entry);
      known.set(key, startOf(entry));
    };
    let written = 0;
    this.#begun.clear();
    for await (const { from, entries, sequence } of readChunks(this.#log, this.runId)) {
      entries.forEach(know);
      written = from + entries.length;
      this.#read = sequence;
    }
    // It may be read while it is written: entries that are not in the log yet count, too.
    for (const { entry } of this.#tail) know(entry);
    this.#known = known;
    this.#written = written;
  }

  #noteBegun(entry: LedgerEntry): void {
    if (entry.kind === "start") this.#begun.set(entry.nodeId, entry);
    else if (entry.kind === "end") this.#begun.delete(entry.nodeId);
  }

  async #writeChunk(): Promise<void> {
    const chunk = this.#chunk();
    const drops = this.#drops;
    await this.#log.appendAll([{ stream: ledgerStream(this.runId), entry: chunk }], { records: this.#held });
    // If they were dropped meanwhile, a recall or a refresh finds them in the log.
    if (drops === this.#drops) this.#forget(chunk.entries.length);
    this.#listener.written?.();
  }

  /** As many of the entries that are held as go together: one at least, where there is one. */
  #chunk(): LedgerChunk {
    let bytes = 0;
    const end = this.#tail.findIndex((held, at) => (bytes += held.bytes) > LEDGER_CHUNK_BYTES && at > 0);
    const held = end < 0 ? this.#tail : this.#tail.slice(0, end);
    const counted = this.#completed && { completedNodeCount: this.#completed() };
    return { from: this.#written, entries: held.map(({ entry }) => entry), ...counted };
  }

  #forget(entries: number): void {
    for (const { bytes } of this.#tail.splice(0, entries)) this.#tailBytes -= bytes;
    this.#written += entries;
    this.#wake();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turns.then(work);
    this.#turns = done.catch(() => {});
    return done;
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #change(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(wake);
        reject(signal!.reason);
      };
      const wake = () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.add(wake);
    });
  }
}

/** The entries of a run's ledger in the log; damaged entries are left out. Throws LogUnavailable. */
export async function* readChunks(
  log: ports.EventLog,
  runId: string,
  options: ports.ReadOptions = {},
): AsyncGenerator<LedgerChunk & { readonly sequence: number }, void> {
  for await (const found of log.read(ledgerStream(runId), options)) {
    if (!found.damaged) yield { ...(found.entry as unknown as LedgerChunk), sequence: found.sequence };
  }
}

/** How many nodes a run had completed when its ledger was last written. Undefined if no other process counts them. Throws LogUnavailable. */
export async function readCompletedNodeCount(log: ports.EventLog, runId: string): Promise<number | undefined> {
  for await (const chunk of readChunks(log, runId, { backwards: true, limit: 1 })) return chunk.completedNodeCount;
  return undefined;
}

/** The readable entries of a run that does not execute here. Throws LogUnavailable and the signal's reason. */
export async function* readEntries(log: ports.EventLog, runId: string, signal: AbortSignal): AsyncGenerator<LedgerEntry, void> {
  let next = 0;
  for await (const { from, entries } of readChunks(log, runId, { signal })) {
    // A chunk whose write got no response may be stored twice.
    yield* entries.slice(Math.max(0, next - from));
    next = Math.max(next, from + entries.length);
  }
}

/**
 * The stored form of an entry. The input of a node may be of any size, because it is made from outputs of others, and so may the parameters of a
 * sub-workflow. Encrypted values need more than their plain form. A run that lacks such a value cannot be resumed.
 */
function fitted(entry: LedgerEntry): { readonly entry: LedgerEntry; readonly bytes: number } {
  const bytes = Buffer.byteLength(JSON.stringify(entry));
  if (bytes <= LEDGER_CHUNK_BYTES) return { entry, bytes };
  if (entry.kind === "parameters") {
    const { hidden: _hidden, ...rest } = entry;
    return sized({ ...rest, parameters: LEFT_OUT, isLeftOut: true });
  }
  if (entry.kind !== "end") return { entry, bytes };
  const shown = sized({ ...entry, inputs: LEFT_OUT });
  if (shown.bytes <= LEDGER_CHUNK_BYTES) return shown;
  const { kept: _kept, ...rest } = entry;
  return sized({ ...rest, inputs: LEFT_OUT });
}

const LEFT_OUT = `(left out: over ${LEDGER_CHUNK_BYTES} bytes)`;

function sized(entry: LedgerEntry): { readonly entry: LedgerEntry; readonly bytes: number } {
  return { entry, bytes: Buffer.byteLength(JSON.stringify(entry)) };
}

function startOf(entry: LedgerEntry): string | undefined {
  return entry.kind === "start" ? entry.at : undefined;
}

/** A node starts once, ends once, and opens its gate once. Each attempt of a callback waits once. */
function keyOf(entry: LedgerEntry): string {
  const { kind, nodeId } = entry;
  return entry.kind === "callback" ? `${kind} ${nodeId} ${entry.attempt}` : `${kind} ${nodeId}`;
}
