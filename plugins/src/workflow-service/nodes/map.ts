import type { ports } from "@portico/core";
import * as v from "valibot";
import { anyObject } from "../definition/document-schema.ts";

export const mapNode: ports.NodeRules = {
  type: "map",
  input: v.strictObject({
    items: v.pipe(v.array(v.unknown()), v.description("The list: an expression. Each element is `item`, its place is `index`.")),
    concurrency: v.optional(
      v.pipe(
        v.number(),
        v.integer("This is a whole number"),
        v.minValue(1, "Of 1 to 64 elements at a time"),
        v.maxValue(64, "Of 1 to 64 elements at a time"),
        v.description("How many elements are worked on at a time; default 8."),
      ),
      8,
    ),
    nodes: v.pipe(anyObject, v.description("Nodes that run for each element: a graph of its own.")),
    result: v.pipe(
      v.unknown(),
      v.description("What becomes of each element: an expression. The node's output is the list of these."),
    ),
  }),
  keys: { items: "expression", nodes: "graph", result: "expression" },
  // What was done for single elements is remembered by the nodes within.
  repeatable: true,
};
