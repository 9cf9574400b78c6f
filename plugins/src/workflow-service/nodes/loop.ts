import type { ports } from "@portico/core";
import * as v from "valibot";
import { anyObject } from "../definition/document-schema.ts";

/** Of a loop that has an end of its own, but does not say how often it may turn. */
const DEFAULT_ITERATIONS = 100;

export const loopNode: ports.NodeRules = {
  type: "loop",
  input: v.strictObject({
    until: v.optional(
      v.pipe(v.unknown(), v.description("A CEL expression, asked after each turn: the loop ends when it is true.")),
    ),
    maxIterations: v.optional(
      v.pipe(
        v.number(),
        v.integer("This is a whole number"),
        v.minValue(1, "A loop turns 1 to 10,000 times"),
        v.maxValue(10_000, "A loop turns 1 to 10,000 times"),
        v.description("How often it turns at most; default 100 where there is `until`."),
      ),
      DEFAULT_ITERATIONS,
    ),
    nodes: v.pipe(anyObject, v.description("Nodes that run at each turn: a graph of its own.")),
    result: v.pipe(
      v.unknown(),
      v.description(
        "What comes of each turn: an expression. It is `previous` for the next one, and in the end the node's output.",
      ),
    ),
  }),
  keys: { until: "expression", nodes: "graph", result: "expression" },
  check: ({ until, maxIterations }) =>
    until === undefined && maxIterations === undefined
      ? [{ path: [], message: "A loop says when it ends: `until`, `maxIterations`, or both" }]
      : [],
  repeatable: true,
};
