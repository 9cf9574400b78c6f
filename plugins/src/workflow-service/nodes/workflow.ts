import type { ports } from "@portico/core";
import * as v from "valibot";
import { anyObject } from "../definition/document-schema.ts";

export const workflowNode: ports.NodeRules = {
  type: "workflow",
  input: v.strictObject({
    workflow: v.pipe(
      v.string(),
      v.regex(/^[A-Za-z0-9_-]{1,64}$/, "The id of a workflow is 1-64 letters, digits, `_` and `-`"),
      v.description("Id of the workflow that is run. Its outputs are the node's."),
    ),
    parameters: v.optional(v.pipe(anyObject, v.description("What it is given; default: nothing.")), {}),
  }),
  // The run that it started is found again.
  repeatable: true,
};
