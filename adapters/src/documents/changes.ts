import type { ports } from "@portico/core";
import type { DocumentPlace } from "./document-place.ts";

/** Intervals of full checks for unreported changes, in milliseconds. Default: never. */
export interface WatchTimes {
  /** For a storage that reports changes. */
  readonly netMs?: number;
  /** For a storage that cannot report changes, or fails to. */
  readonly pollMs?: number;
}

/** Reports to subscribers which documents change. */
export interface Changes {
  /** Resolves when all later changes will be seen. The returned function ends the subscription. */
  subscribe(changed: (name: string) => void): Promise<() => Promise<void>>;
  /** Reports a change that was made here at once. */
  tell(name: string): void;
  close(): Promise<void>;
}

/** Editors save in several steps, and a checkout changes many files: one check after the first hint covers them all. */
const SETTLE_MS = 50;
const AT_ONCE = 32;

/**
 * Reports changes to subscribers. A report of the storage is only a hint. A document has changed when its fingerprint differs
 * from the previous one. This also holds for the periodic checks, and for storages without hints. Watching begins with the first
 * subscriber.
 */
export function createChanges(place: DocumentPlace, clock: ports.Clock, times: WatchTimes): Changes {
  const listeners = new Set<(name: string) => void>();
  const seen = new Map<string, string>();
  let hinted: Set<string> | "all" = new Set();
  let settling: ports.Timer | undefined;
  let looking: Promise<void> = Promise.resolve();
  let watching: Promise<() => Promise<void>> | undefined;

  const tell = (name: string): void => {
    for (const listener of listeners) listener(name);
  };
  const compare = async (name: string, found: (name: string) => void): Promise<void> => {
    note(name, await place.fingerprint(name).catch(() => seen.get(name)), found);
  };
  const note = (name: string, now: string | undefined, found: (name: string) => void): void => {
    if (now === seen.get(name)) return;
    if (now === undefined) seen.delete(name);
    else seen.set(name, now);
    found(name);
  };
  const look = async (names: ReadonlySet<string> | "all", found: (name: string) => void): Promise<void> => {
    if (names === "all" && place.fingerprints) {
      const now = await place.fingerprints().catch(() => seen);
      for (const name of new Set([...now.keys(), ...seen.keys()])) note(name, now.get(name), found);
      return;
    }
    const there = names === "all" ? await place.list().catch(() => undefined) : [...names];
    // A storage that cannot be listed now will work later. Its content did not change by that.
    if (there === undefined) return;
    const all = [...new Set(names === "all" ? [...there, ...seen.keys()] : there)];
    for (let first = 0; first < all.length; first += AT_ONCE) {
      await Promise.all(all.slice(first, first + AT_ONCE).map((name) => compare(name, found)));
    }
  };
  const hint = (name?: string): void => {
    if (name === undefined) hinted = "all";
    else if (hinted !== "all") hinted.add(name);
    settling ??= clock.after(SETTLE_MS, () => {
      settling = undefined;
      const names = hinted;
      hinted = new Set();
      looking = looking.then(() => look(names, tell));
    });
  };
  const begin = async (): Promise<() => Promise<void>> => {
    const stop = await place.watch?.(hint).catch(() => undefined);
    const every = stop ? times.netMs : times.pollMs;
    // After watching began: every later change differs from the fingerprints taken here.
    await look("all", () => {});
    const timer = every === undefined ? undefined : repeat(clock, every, () => hint());
    return async () => {
      timer?.cancel();
      await stop?.();
      settling?.cancel();
      await looking;
    };
  };

  return {
    async subscribe(changed) {
      // A new function, so that a listener that is added twice is called twice.
      const listener = (name: string): void => changed(name);
      await (watching ??= begin());
      listeners.add(listener);
      return async () => void listeners.delete(listener);
    },
    tell,
    async close() {
      listeners.clear();
      await (
        await watching
      )?.();
    },
  };
}

function repeat(clock: ports.Clock, ms: number, run: () => void): { cancel(): void } {
  const again = (): ports.Timer =>
    clock.after(ms, () => {
      timer = again();
      run();
    });
  let timer = again();
  return { cancel: () => timer.cancel() };
}
