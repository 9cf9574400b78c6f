import { ports } from "@portico/core";
import * as v from "valibot";
import { checkShape } from "../definition/check-shape.ts";

const MOST_FAULTS = 5;

/** Checks a node's evaluated values against its schema. Throws NodeFailed with the paths and the found types, without values. */
export function parseInput<S extends v.GenericSchema>(schema: S, inputs: Readonly<Record<string, unknown>>): v.InferOutput<S> {
  const parsed = v.safeParse(schema, inputs);
  if (parsed.success) return parsed.output;
  const faults = checkShape(schema, inputs)
    .slice(0, MOST_FAULTS)
    .map(({ path, message }) => `${["with", ...path].join(".")}: ${message}`);
  throw new ports.NodeFailed("invalid_input", faults.join("; "), { retryable: false });
}
