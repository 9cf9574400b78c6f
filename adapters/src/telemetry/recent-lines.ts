/** Bounds of the kept lines. A line has some 300 characters. */
const KEPT_LINES = 2_000;
const KEPT_CHARACTERS = 1024 * 1024;

/**
 * The newest lines of the log of one process, in memory: at most 2,000 lines with 1,048,576 characters. Pass it to the adapter
 * `telemetry/opentelemetry`, which adds the lines, and to the plugin `log`, which sends them to readers.
 */
export interface RecentLines {
  /** Position of the newest line. The first line has the position 1. 0 without a line. */
  readonly newest: number;
  /** Position of the oldest kept line. `newest + 1` if no line is kept. */
  readonly oldest: number;
  /** Adds a line: the text of one JSON object. Readers never slow it down: the oldest lines are dropped without waiting for them. */
  add(line: string): void;
  /** The text of the line at a position. Undefined if the line is not kept. */
  at(position: number): string | undefined;
  /** Resolves when a line after this position was added. Rejects with the reason of the signal when it aborts. */
  after(position: number, signal: AbortSignal): Promise<void>;
}

/** An empty collection of the newest lines of a log. */
export function createRecentLines(): RecentLines {
  const ring = Array.from<string | undefined>({ length: KEPT_LINES });
  const waiting = new Set<() => void>();
  let newest = 0;
  let oldest = 1;
  let characters = 0;
  const drop = () => {
    const place = oldest++ % KEPT_LINES;
    characters -= ring[place]!.length;
    ring[place] = undefined;
  };
  return {
    get newest() {
      return newest;
    },
    get oldest() {
      return oldest;
    },
    add(line) {
      if (newest - oldest + 1 === KEPT_LINES) drop();
      ring[++newest % KEPT_LINES] = line;
      characters += line.length;
      while (characters > KEPT_CHARACTERS) drop();
      if (waiting.size === 0) return;
      for (const wake of waiting) wake();
      waiting.clear();
    },
    at: (position) => (position < oldest || position > newest ? undefined : ring[position % KEPT_LINES]),
    async after(position, signal) {
      signal.throwIfAborted();
      if (newest > position) return;
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          waiting.delete(wake);
          reject(signal.reason as Error);
        };
        const wake = () => {
          signal.removeEventListener("abort", leave);
          resolve();
        };
        waiting.add(wake);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
