import type { ports } from "@portico/core";
import * as v from "valibot";
import { jsonSchema } from "../definition/document-schema.ts";
import { duration } from "../definition/parse-duration.ts";

export const humanGateNode: ports.NodeRules = {
  type: "human_gate",
  input: v.strictObject({
    title: v.pipe(
      v.string(),
      v.minLength(1, "A gate has a title"),
      v.maxLength(500, "A title has at most 500 characters"),
      v.description("What a person is asked to decide."),
    ),
    message: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(65_536, "A message has at most 65,536 characters"),
        v.description("What helps to decide it."),
      ),
      "",
    ),
    form: v.optional(v.pipe(jsonSchema, v.description("JSON Schema of the `values` that come with the decision."))),
    timeout: v.optional(duration("How long the gate waits: a duration; default: for ever.")),
    onTimeout: v.optional(
      v.pipe(v.picklist(["approve", "reject"]), v.description("What is decided when the time is over; default `reject`.")),
      "reject",
    ),
  }),
  keys: { form: "verbatim" },
  cases: () => ["approve", "reject"],
  // After a crash it goes on waiting.
  repeatable: true,
};
