/** Takes text of one or more whole lines. One that buffers may offer `flushSync`, called after errors and when the app closes. */
export interface LogDestination {
  write(lines: string): unknown;
  flushSync?(): void;
}

export interface LineBatch {
  write(line: string): void;
  /** Everything that was written has left the process when this returns, as far as the destination can say. */
  flush(): void;
  /** Flush, and forget the process. */
  close(): void;
}

/** Under load the lines of so long a time leave together; after a pause a line leaves at the end of its turn of the event loop. */
const GATHER_MS = 20;
/** So many lines leave at once, however soon. */
const MOST_LINES = 1_000;

/**
 * Hands lines over together: a system call for each would cost more than all the rest of logging. What is not handed over when the
 * process exits, also by an uncaught exception, is flushed then.
 */
export function createLineBatch(destination: LogDestination): LineBatch {
  let lines: string[] = [];
  let handedOverAt = Number.NEGATIVE_INFINITY;
  const handOver = () => {
    if (lines.length === 0) return;
    handedOverAt = performance.now();
    const text = lines.length === 1 ? lines[0]! : lines.join("");
    lines = [];
    destination.write(text);
  };
  const flush = () => {
    try {
      handOver();
      destination.flushSync?.();
    } catch {
      // A log that cannot be written, for example because its reader is gone, must not take a request with it.
    }
  };
  process.on("exit", flush);
  return {
    write(line) {
      if (lines.length === 0) later(handedOverAt + GATHER_MS - performance.now(), handOver);
      lines.push(line);
      if (lines.length >= MOST_LINES) handOver();
    },
    flush,
    close() {
      flush();
      process.off("exit", flush);
    },
  };
}

function later(ms: number, run: () => void): void {
  if (ms > 0) setTimeout(run, ms).unref();
  else setImmediate(run);
}
