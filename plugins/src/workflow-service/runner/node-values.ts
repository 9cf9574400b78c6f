import { ports, hasMoreLevels, retryWhileStoreAway } from "@portico/core";
import * as v from "valibot";
import {
  type Evaluated,
  type Expression,
  ExpressionFailed,
  type ExpressionScope,
  TakesLong,
  type Template,
  TurnUsed,
} from "../expressions/expression.ts";
import type { EvaluateBeside } from "../expressions/expression-thread.ts";
import { turnBudget } from "../expressions/turn-budget.ts";
import { type Frame, type Running, scopeOf } from "./running.ts";
import { checkShape, kindInWords } from "../definition/check-shape.ts";
import type { Hidden } from "../secrecy/secret-keeper.ts";

/**
 * The result of `evaluate`, which evaluates `expressions` of a frame, in this order. If they would block the event loop, they are evaluated
 * one by one before that: in later turns of the event loop, and those that take long in a thread. Throws what `evaluate` throws, and the
 * signals' reasons.
 */
export function evaluated<T>(
  running: Running,
  frame: Frame,
  expressions: Iterable<Expression>,
  evaluate: (scope: ExpressionScope) => T,
): Promise<T> {
  const { evaluateBeside } = running.services;
  const signal = () => AbortSignal.any([frame.signal, running.context.signal]);
  return evaluatedIn((results) => scopeOf(running, frame, results), { expressions, evaluate, evaluateBeside, signal });
}

/** The same, outside of a run. `signal` is asked for only if the evaluation has to wait. */
export async function evaluatedIn<T>(
  scopeWith: (results: Map<string, Evaluated>) => ExpressionScope,
  given: {
    readonly expressions: Iterable<Expression>;
    readonly evaluate: (scope: ExpressionScope) => T;
    readonly evaluateBeside: EvaluateBeside;
    readonly signal: () => AbortSignal;
  },
): Promise<T> {
  const { expressions, evaluate, evaluateBeside } = given;
  const results = new Map<string, Evaluated>();
  const scope = scopeWith(results);
  let stopped: TakesLong | TurnUsed | undefined;
  try {
    return evaluate(scope);
  } catch (error) {
    if (!isStopped(error)) throw error;
    stopped = error;
  }
  const signal = given.signal();
  const advance = advancing([...expressions], scope);
  while (stopped) {
    if (stopped instanceof TakesLong) results.set(stopped.source, await evaluateBeside(stopped, signal));
    stopped = await turnBudget.later(advance, signal);
  }
  // All results are known, and what was made of secrets as well.
  return evaluate({ ...scope, derived: undefined });
}

/** A template of a frame with its expressions filled in. Throws ExpressionFailed and the signals' reasons. */
export function filledIn(running: Running, frame: Frame, template: Template): Promise<unknown> {
  return evaluated(running, frame, template.expressions, (scope) => template.fill(scope));
}

/** Whether a condition is true. Throws ExpressionFailed if it cannot be evaluated, or is neither true nor false. */
export function holds(condition: Expression, scope: ExpressionScope): boolean {
  const value = condition.evaluate(scope);
  if (typeof value === "boolean") return value;
  const found = value === null ? "null" : kindInWords(value);
  throw new ExpressionFailed(condition.source, `expected true or false, found ${found}`);
}

const MOST_FAULTS = 5;

/** Checks a node's evaluated values against its schema. Throws NodeFailed with the paths and the found types, without values. */
export function parseInput<S extends v.GenericSchema>(schema: S, inputs: Readonly<Record<string, unknown>>): v.InferOutput<S> {
  const parsed = v.safeParse(schema, inputs);
  if (parsed.success) return parsed.output;
  const faults = checkShape(schema, inputs)
    .slice(0, MOST_FAULTS)
    .map(({ path, message }) => `${["with", ...path].join(".")}: ${message}`);
  throw new ports.NodeFailed("invalid_input", faults.join("; "), { retryable: false });
}

/** Throws NodeFailed if a value is too large or too deep for a node's output. */
export function assertSize(output: unknown): void {
  const { NODE_OUTPUT_BYTES: bytes, NODE_OUTPUT_LEVELS: levels } = ports;
  const fail = (code: string, message: string) => new ports.NodeFailed(code, message, { retryable: false });
  const tooLarge = () => fail("output_too_large", `The output is larger than ${bytes} bytes`);
  const tooDeep = () => fail("output_too_deep", `The output has more than ${levels} levels of lists and objects`);
  let text: string;
  try {
    text = JSON.stringify(output) ?? "";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // JavaScript itself has two limits: the length of a string, and the depth of the stack.
    throw /string length/.test(error.message) ? tooLarge() : tooDeep();
  }
  if (Buffer.byteLength(text) > bytes) throw tooLarge();
  // Each level takes at least two characters. The depth is checked after the size, because shared values are visited at each of their places.
  if (text.length > 2 * levels && hasMoreLevels(output, levels)) throw tooDeep();
}

/** Opens the stored output of an attempt or of another run. Throws NodeFailed if it cannot be opened. */
export function openOutput(
  running: Running,
  { output, hidden }: { readonly output?: unknown; readonly hidden?: Hidden | undefined },
): Promise<unknown> {
  return retryWhileStoreAway(running.storeRetry, () => running.secrecy.open(running.record.runId, { value: output, hidden }));
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
