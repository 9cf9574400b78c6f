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

/**
 * Hands over the lines of one turn of the event loop together: under load that costs a quarter of handing over each. What is not handed
 * over when the process exits, also by an uncaught exception, is flushed then.
 */
export function createLineBatch(destination: LogDestination): LineBatch {
  let lines: string[] = [];
  const handOver = () => {
    if (lines.length === 0) return;
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
      if (lines.length === 0) setImmediate(handOver);
      lines.push(line);
    },
    flush,
    close() {
      flush();
      process.off("exit", flush);
    },
  };
}
