import type { ports } from "@portico/core";
import * as v from "valibot";

export const failNode: ports.NodeRules = {
  type: "fail",
  input: v.strictObject({
    message: v.pipe(v.string(), v.minLength(1, "A failure has a message"), v.description("Why the node fails.")),
  }),
  repeatable: true,
};
