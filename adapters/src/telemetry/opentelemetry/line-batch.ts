import { guardCall } from "@portico/core";

/**
 * Accepts text of one or more whole lines. A destination with a buffer may offer `flushSync`, called after errors and when the
 * app closes.
 */
export interface LogDestination {
  write(lines: string): unknown;
  flushSync?(): void;
}

export interface LineBatch {
  write(line: string): void;
  /** When this returns, everything written has left the process, as far as the destination can tell. */
  flush(): void;
  /** Flush, and remove the exit listener. */
  close(): void;
}

/** Under load, lines are gathered for this time. After a pause, a line is written at the end of its turn of the event loop. */
const GATHER_MS = 20;
/** Flush at this many lines without waiting. */
const MOST_LINES = 1_000;

/**
 * Writes lines in batches: a system call for each would cost more than all other parts of logging. Remaining lines are flushed
 * when the process exits, also after an uncaught exception.
 */
export function createLineBatch(destination: LogDestination): LineBatch {
  let lines: string[] = [];
  let handedOverAt = Number.NEGATIVE_INFINITY;
  const handOver = () => {
    if (lines.length === 0) return;
    handedOverAt = performance.now();
    const text = lines.length === 1 ? lines[0]! : lines.join("");
    lines = [];
    quietly(() => destination.write(text));
  };
  // A log that cannot be written, for example because its reader has ended, must not fail a request.
  const quietly = (run: () => unknown) => guardCall(run, () => {});
  const flush = () => {
    handOver();
    quietly(() => destination.flushSync?.());
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
