import type { Clock } from "./ports/clock.ts";
import type { Scope } from "./scope.ts";

/**
 * Does `work` again and again, `everyMs` after it was last done and for the first time after `firstMs` (default: `everyMs`), until the scope
 * closes: then it gets an aborted signal, and closing waits for it. `work` deals with its own failures.
 */
export function repeatUntilClosed(
  scope: Scope,
  { clock, everyMs, firstMs = everyMs }: { readonly clock: Clock; readonly everyMs: number; readonly firstMs?: number },
  work: (closing: AbortSignal) => Promise<void>,
): void {
  const closing = new AbortController();
  let working: Promise<void> = Promise.resolve();
  const run = () => {
    working = work(closing.signal).then(() => {
      if (!closing.signal.aborted) timer = clock.after(everyMs, run);
    });
  };
  let timer = clock.after(firstMs, run);
  scope.onClose(async () => {
    closing.abort();
    timer.cancel();
    await working;
  });
}
