import { type EvaluatedBeside, type ExpressionScope, TakesLong } from "../definition/expression.ts";
import { type Frame, type Running, scopeOf } from "./running.ts";

const NONE: ReadonlyMap<string, EvaluatedBeside> = new Map();

/**
 * The result of `evaluate`, which evaluates expressions of a frame. Expressions that take long are evaluated in a thread, and `evaluate` is
 * called again with their results, because the event loop must not wait for them. Throws what `evaluate` throws, and the signals' reasons.
 */
export async function evaluated<T>(running: Running, frame: Frame, evaluate: (scope: ExpressionScope) => T): Promise<T> {
  let beside = NONE;
  for (;;) {
    try {
      return evaluate(scopeOf(running, frame, beside));
    } catch (error) {
      if (!(error instanceof TakesLong)) throw error;
      const signal = AbortSignal.any([frame.signal, running.context.signal]);
      beside = new Map(beside).set(error.source, await running.world.evaluateBeside(error, signal));
    }
  }
}
