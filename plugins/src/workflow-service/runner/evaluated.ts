import {
  type Evaluated,
  type Expression,
  ExpressionFailed,
  type ExpressionScope,
  TakesLong,
  type Template,
  TurnUsed,
} from "../definition/expression.ts";
import { turnBudget } from "../definition/turn-budget.ts";
import { type Frame, type Running, scopeOf } from "./running.ts";

/**
 * The result of `evaluate`, which evaluates `expressions` of a frame, in this order. If they would block the event loop, they are evaluated
 * one by one before that: in later turns of the event loop, and those that take long in a thread. Throws what `evaluate` throws, and the
 * signals' reasons.
 */
export async function evaluated<T>(
  running: Running,
  frame: Frame,
  expressions: Iterable<Expression>,
  evaluate: (scope: ExpressionScope) => T,
): Promise<T> {
  const kept = new Map<string, Evaluated>();
  const scope = scopeOf(running, frame, kept);
  let stopped: TakesLong | TurnUsed | undefined;
  try {
    return evaluate(scope);
  } catch (error) {
    if (!isStopped(error)) throw error;
    stopped = error;
  }
  const signal = AbortSignal.any([frame.signal, running.context.signal]);
  const advance = advancing([...expressions], scope);
  while (stopped) {
    if (stopped instanceof TakesLong) kept.set(stopped.source, await running.world.evaluateBeside(stopped, signal));
    stopped = await turnBudget.later(advance, signal);
  }
  // All results are known, and what was made of secrets as well.
  return evaluate({ ...scope, derived: undefined });
}

/** A template of a frame with its expressions filled in. Throws ExpressionFailed and the signals' reasons. */
export function filledIn(running: Running, frame: Frame, template: Template): Promise<unknown> {
  return evaluated(running, frame, template.expressions, (scope) => template.fill(scope));
}

/** Evaluates the expressions from where it stopped. Returns why it stops again; undefined after the last one, and after one that failed. */
function advancing(expressions: readonly Expression[], scope: ExpressionScope): () => TakesLong | TurnUsed | undefined {
  let at = 0;
  return () => {
    try {
      for (; at < expressions.length; at++) expressions[at]!.evaluate(scope);
    } catch (error) {
      if (isStopped(error)) return error;
      if (!(error instanceof ExpressionFailed)) throw error;
    }
    return undefined;
  };
}

function isStopped(error: unknown): error is TakesLong | TurnUsed {
  return error instanceof TakesLong || error instanceof TurnUsed;
}
