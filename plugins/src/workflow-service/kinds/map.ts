import { jsonObject } from "@portico/core/contract";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as v from "valibot";
import { type AttemptsFailed, innerFailed } from "../runner/attempts-failed.ts";
import { innerGraph, innerResult } from "../runner/inner-graph.ts";
import { parseInput } from "../runner/parse-input.ts";
import type { NodeKind } from "../runner/running.ts";

/** Values that are evaluated when the node starts. The rest of `with` is its graph, and the expressions for each element. */
const given = {
  items: v.pipe(
    v.array(v.unknown()),
    v.description("The list: an expression. `item` is the present element, `index` its position."),
  ),
  concurrency: v.optional(
    v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(1, "Of 1 to 64 elements at a time"),
      v.maxValue(64, "Of 1 to 64 elements at a time"),
      v.description("Number of elements that are processed at the same time; default 8."),
    ),
    8,
  ),
};
const filledIn = v.strictObject(given);

/** Maximum number of items that start in one turn of the event loop, because many quick items would block it. */
const ITEMS_PER_TURN = 32;

/** Executes its nodes for each item, in order, several at a time. If an item fails, the node fails. */
export const mapKind: NodeKind = {
  type: "map",
  input: v.strictObject({
    ...given,
    nodes: v.pipe(jsonObject, v.description("Nodes that run for each element: a separate graph.")),
    result: v.pipe(
      v.unknown(),
      v.description("Result of each element: an expression. The node's output is the list of results."),
    ),
  }),
  keys: { items: "expression", nodes: "graph", result: "expression" },
  later: new Set(["result"]),
  // The nodes inside store the results of single items.
  repeatable: true,
  async play(play) {
    const { inputs, frame } = play;
    const { items, concurrency } = parseInput(filledIn, inputs);
    const over = new AbortController();
    const abort = () => over.abort(frame.signal.reason);
    frame.signal.addEventListener("abort", abort, { once: true });
    const inner = innerGraph(play, over.signal);
    const results: unknown[] = Array.from({ length: items.length }, () => null);
    let next = 0;
    // All workers share a turn: if one waited for the next turn alone, the others would go on without a pause.
    let startedInTurn = 0;
    let turn: Promise<void> | undefined;
    let failure: AttemptsFailed | undefined;
    // If another item has failed, its failure is the node's.
    const unlessOver = (error: unknown): void => {
      if (!over.signal.aborted) throw error;
    };
    const work = async (): Promise<void> => {
      while (next < items.length && !over.signal.aborted) {
        if (startedInTurn === ITEMS_PER_TURN) {
          await (turn ??= nextTurn().then(() => {
            startedInTurn = 0;
            turn = undefined;
          }));
          continue;
        }
        startedInTurn++;
        const index = next++;
        const { frame: played, outcome } = await inner({ item: items[index], index });
        if (outcome.type === "completed") results[index] = await innerResult(play, played).catch(unlessOver);
        else if (outcome.type === "failed") {
          failure ??= innerFailed(outcome);
          over.abort();
        }
      }
    };
    try {
      const workers = Array.from({ length: Math.min(concurrency, items.length) }, () =>
        work().catch((error: unknown) => {
          over.abort(error);
          throw error;
        }),
      );
      const thrown = (await Promise.allSettled(workers)).find((worker) => worker.status === "rejected");
      if (thrown) throw thrown.reason;
    } finally {
      frame.signal.removeEventListener("abort", abort);
    }
    if (failure) throw failure;
    frame.signal.throwIfAborted();
    return { output: results, attempts: 1 };
  },
};
