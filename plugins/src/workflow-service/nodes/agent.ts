import type { ports } from "@portico/core";
import * as v from "valibot";

const name = v.pipe(v.string(), v.minLength(1, "This text is not empty"));

export const agentNode: ports.NodeRules = {
  type: "agent",
  input: v.strictObject({
    agent: v.pipe(name, v.description("Id of the agent.")),
    prompt: v.pipe(name, v.description("What it is told.")),
    maxTurns: v.optional(
      v.pipe(
        v.number(),
        v.integer("This is a whole number"),
        v.minValue(1, "An agent takes 1 to 100 turns"),
        v.maxValue(100, "An agent takes 1 to 100 turns"),
        v.description("How often the model may be called; default 5."),
      ),
      5,
    ),
    toolIds: v.optional(v.pipe(v.array(name), v.description("Tools that it may use; default: its own."))),
  }),
  // What its tools did is done.
  repeatable: false,
};
