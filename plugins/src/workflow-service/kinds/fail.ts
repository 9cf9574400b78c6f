import { ports } from "@portico/core";
import * as v from "valibot";

const input = v.strictObject({
  message: v.pipe(v.string(), v.minLength(1, "A failure has a message"), v.description("The error message.")),
});

/** Fails with the author's message. */
export const failNode: ports.WorkflowNode<v.InferOutput<typeof input>> = {
  type: "fail",
  input,
  repeatable: true,
  pure: true,
  async run({ input: { message } }) {
    throw new ports.NodeFailed("failed", message, { retryable: false });
  },
};
