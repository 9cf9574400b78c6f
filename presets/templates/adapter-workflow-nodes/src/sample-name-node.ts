import { defineAdapter, ports } from "@portico/core";
import * as v from "valibot";

/** What a definition says under `with`. */
const input = v.strictObject({ text: v.string(), times: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 1) });

export interface SampleNameNodeOptions {
  /** Characters of an output, at most; default 10,000. */
  readonly longest?: number;
}

/** Nodes of type `sample-name`: `{ text, times? }` in, `{ text }` out. */
export const sampleNameNode = defineAdapter({
  name: "workflow-nodes/sample-name",
  port: ports.workflowNodes,
  needs: {},
  open: (_given, { longest = 10_000 }: SampleNameNodeOptions): ports.WorkflowNode<v.InferOutput<typeof input>> => ({
    type: "sample-name",
    input,
    // Doing it again changes nothing more: it is, after a crash in the middle.
    repeatable: true,
    async run({ input: { text, times }, signal }) {
      signal.throwIfAborted();
      if (text.length * times > longest)
        throw new ports.NodeFailed("output_too_long", "The output would be too long", { retryable: false });
      return { text: text.repeat(times) };
    },
  }),
});
