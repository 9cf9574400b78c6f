import type { ports, Scope } from "@portico/core";
import { JobOutOfMemory, JobOverran, JobThread } from "@portico/core/kit";
import { evaluateSource, TOO_COSTLY } from "./create-expressions.ts";
import { EXPRESSION_MS } from "./expression-limits.ts";
import type { Evaluated, ExpressionScope, TakesLong } from "./expression.ts";

export interface ExpressionJob {
  readonly source: string;
  readonly scope: ExpressionScope;
}

/** Evaluates an expression that takes long. Rejects only with the signal's reason. */
export type EvaluateBeside = (long: TakesLong, signal: AbortSignal) => Promise<Evaluated>;

const MEMORY_MB = 512;
const IDLE_MS = 10_000;

/** Evaluates expressions that take long in a thread, one after another. The first one starts the thread. */
export function evaluateInThread(clock: ports.Clock, scope: Scope): EvaluateBeside {
  const module = () => new URL(import.meta.resolve("#expression-worker"));
  const options = { name: "expressions", module, memoryMb: MEMORY_MB, cpuMs: EXPRESSION_MS, idleMs: IDLE_MS };
  const thread = new JobThread<ExpressionJob, Evaluated>(options, clock);
  scope.onClose(() => thread.close());
  return async ({ source, scope: read }, signal) => {
    try {
      return await thread.run({ source, scope: read }, { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof JobOverran || error instanceof JobOutOfMemory) return { reason: TOO_COSTLY };
      // The service closes, or the thread cannot start. A wrong failure would end the run.
      return evaluateSource(source, read);
    }
  };
}
