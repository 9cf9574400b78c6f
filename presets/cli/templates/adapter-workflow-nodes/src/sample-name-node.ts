import { defineWorkflowNode, ports } from "@portico/core";
import * as v from "valibot";

/** The content of `with` in a definition. */
const input = v.strictObject({ text: v.string(), times: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 1) });

export interface SampleNameNodeOptions {
  /** Maximum number of characters of an output. Default: 10,000. */
  readonly longest?: number;
}

/** Nodes of type `sample-name`: `{ text, times? }` in, `{ text }` out. */
export const sampleNameNode = defineWorkflowNode({
  name: "workflow-nodes/sample-name",
  needs: {},
  // Definitions are checked with this schema, also before an app is open.
  rules: () => ({
    type: "sample-name",
    input,
    // The node is idempotent: running it again after a crash has no further effect.
    repeatable: true,
  }),
  open: (_given, { longest = 10_000 }: SampleNameNodeOptions) => ({
    async run({ input: { text, times }, signal }: ports.NodeWork<v.InferOutput<typeof input>>) {
      signal.throwIfAborted();
      if (text.length * times > longest)
        throw new ports.NodeFailed("output_too_long", "The output would be too long", { retryable: false });
      return { text: text.repeat(times) };
    },
  }),
});
