import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { type Adapter, createApp, ports } from "@portico/core";

/** One process of an engine's, as far as its suite can tell. */
export interface EngineUnderTest {
  /** The engine and all that it needs: records and a clock of this process's own. */
  readonly adapters: readonly Adapter[];
  /** Resolves when `ms` milliseconds of that clock have passed and everything that fell due was begun. */
  pass(ms: number): Promise<void>;
  /** Puts the engine's store out of reach and back, while it is open. */
  readonly outage?: Outage;
}

/** A store that cannot be written for a while. */
export interface Outage {
  begin(): void;
  end(): void;
}

/** What the suite keeps beside the work. */
export interface Note {
  text: string;
}

/** An engine that stands open, with its records. */
export interface OpenEngine {
  readonly engine: ports.Engine;
  readonly notes: ports.Collection<Note>;
  batch(writes: readonly ports.Write[]): Promise<void>;
  pass(ms: number): Promise<void>;
  /** The status of a work when it has ended. */
  ended(id: string): Promise<ports.WorkStatus>;
  close(): Promise<void>;
}

/** Open an engine; `define` says what its kinds do. It is not ready yet. */
export async function openEngine(under: EngineUnderTest, define?: (engine: ports.Engine) => void): Promise<OpenEngine> {
  const app = await createApp({ name: "engine-conformance", adapters: [...under.adapters] });
  const engine = app.port(ports.engine);
  const records = app.port(ports.records);
  define?.(engine);
  const ended = async (id: string): Promise<ports.WorkStatus | undefined> => {
    const status = await engine.status(id);
    return status?.endedAt === undefined ? undefined : status;
  };
  return {
    engine,
    notes: records.collection<Note>({ name: "conformance-notes" }),
    batch: records.batch,
    pass: under.pass,
    ended: (id) => found(() => ended(id)),
    close: app.close,
  };
}

/** Looks in as many turns of the event loop follow each other; what takes longer waits for a disk or a process, and needs the processor itself. */
const LOOKS_AT_ONCE = 100;

/** The first result of `look`, within the test's timeout. */
export async function found<T>(look: () => T | Promise<T>): Promise<Exclude<T, undefined | null | false | 0>> {
  for (let looks = 0; ; looks++) {
    const seen = await look();
    if (seen) return seen as Exclude<T, undefined | null | false | 0>;
    if (looks < LOOKS_AT_ONCE) await nextTurn();
    else await sleep(2);
  }
}

/**
 * Enough time for whatever was set going to have happened, the disk's part in it included: for tests that something does not. Where it does
 * take longer, such a test tests less, and does not fail.
 */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) {
    await nextTurn();
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A door that work stands before until it is opened. */
export interface Gate {
  readonly passed: Promise<void>;
  open(): void;
}

/** A closed gate. */
export function createGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
}

/** Rejects with the signal's reason when it aborts, and does nothing else. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
