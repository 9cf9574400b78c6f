import type { Clock } from "./ports/clock.ts";
import type { Scope } from "./scope.ts";

/**
 * Runs `work` repeatedly: for the first time after `firstMs` (default: `everyMs`), then `everyMs` after each run has ended, until
 * the scope closes. Its signal then aborts, and closing waits for it. `work` handles its own failures.
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
