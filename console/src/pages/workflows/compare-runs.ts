import { canonicalJson } from "../../api/canonical-json.ts";
import type { NodeResult } from "./workflow-calls.ts";

type Results = Readonly<Record<string, NodeResult>>;
export type Difference = "status" | "inputs" | "outputs" | "error";

/** A node of two runs of one workflow. */
export interface ComparedNode {
  /** The path, as in the history: `each[3].read`. */
  readonly key: string;
  readonly name: string | undefined;
  /** Undefined if the node did not start in that run. */
  readonly one: NodeResult | undefined;
  readonly other: NodeResult | undefined;
  readonly differences: readonly Difference[];
}

/** The nodes of two runs, in the order of the first run. Times are shown, and are no difference. */
export function compareRuns(one: Results, other: Results): readonly ComparedNode[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].map((key) => {
    const [left, right] = [one[key], other[key]];
    const differences = (["status", "inputs", "outputs", "error"] as const).filter(
      (part) => canonicalJson(left?.[part]) !== canonicalJson(right?.[part]),
    );
    return { key, name: left?.name ?? right?.name, one: left, other: right, differences };
  });
}
