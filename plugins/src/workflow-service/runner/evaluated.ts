import { type EvaluatedBeside, type ExpressionScope, TakesLong } from "../definition/expression.ts";
import { type Frame, type Running, scopeOf } from "./running.ts";

/**
 * The result of `evaluate`, which evaluates expressions of a frame. Expressions that take long are evaluated in a thread, and `evaluate` is
 * called again with their results, because the event loop must not wait for them. Throws what `evaluate` throws, and the signals' reasons.
 */
export async function evaluated<T>(running: Running, frame: Frame, evaluate: (scope: ExpressionScope) => T): Promise<T> {
  const beside = new Map<string, EvaluatedBeside>();
  const scope: ExpressionScope = { ...scopeOf(running, frame), beside };
  for (;;) {
    try {
      return evaluate(scope);
    } catch (error) {
      if (!(error instanceof TakesLong)) throw error;
      const signal = AbortSignal.any([frame.signal, running.context.signal]);
      beside.set(error.source, await running.world.evaluateBeside(error, signal));
    }
  }
}
