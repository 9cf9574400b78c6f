import { ports } from "@portico/core";
import type { NodePlay } from "../play-attempts.ts";
import type { NodeResult } from "../play-node.ts";
import { scopeOf } from "../running.ts";

/** Takes the first case that holds, or else `else`; fails where there is neither. */
export async function playBranch({ running, node, frame, inputs }: NodePlay): Promise<NodeResult> {
  const scope = scopeOf(running, frame);
  const cases = node.with["cases"];
  const otherwise = typeof inputs["else"] === "string" ? inputs["else"] : undefined;
  let taken = otherwise;
  for (const [name, expression] of cases?.kind === "expressions" ? cases.expressions : []) {
    if (expression.evaluate(scope) !== true) continue;
    taken = name;
    break;
  }
  if (taken === undefined)
    throw new ports.NodeFailed("no_case", "None of the cases holds, and there is no `else`", { retryable: false });
  return { output: { case: taken }, case: taken, attempts: 1 };
}
