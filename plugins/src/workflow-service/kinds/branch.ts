import { jsonObject, ports } from "@portico/core";
import * as v from "valibot";
import { caseName } from "../definition/document-schema.ts";
import { holds, evaluated } from "../runner/node-values.ts";
import type { NodeKind } from "../runner/running.ts";

/** Takes the first case whose condition is true, or else `else`. Fails if there is neither. */
export const branchKind: NodeKind = {
  type: "branch",
  input: v.strictObject({
    cases: v.pipe(
      jsonObject,
      v.check((cases) => Object.keys(cases).length > 0, "There is at least one case"),
      v.description("CEL expressions by case name. The first one that is true selects the case."),
    ),
    else: v.optional(v.pipe(caseName, v.description("The case if no expression is true. Without it, the node then fails."))),
  }),
  keys: { cases: "expressions", else: "verbatim" },
  cases: (written) => [
    ...new Set([...namesOf(written["cases"]), ...(typeof written["else"] === "string" ? [written["else"]] : [])]),
  ],
  check: (written) =>
    namesOf(written["cases"])
      .filter((name) => !v.is(caseName, name))
      .map((name) => ({ path: ["cases", name], message: "The name of a case is 1-64 letters, digits, `_` and `-`" })),
  repeatable: true,
  async play({ running, node, frame, inputs }) {
    const cases = node.with["cases"];
    const otherwise = typeof inputs["else"] === "string" ? inputs["else"] : undefined;
    let taken = otherwise;
    for (const [name, expression] of cases?.kind === "expressions" ? cases.expressions : []) {
      if (!(await evaluated(running, frame, [expression], (scope) => holds(expression, scope)))) continue;
      taken = name;
      break;
    }
    if (taken === undefined)
      throw new ports.NodeFailed("no_case", "No case is true, and `else` is missing", { retryable: false });
    return { output: { case: taken }, case: taken, attempts: 1 };
  },
};

function namesOf(cases: unknown): string[] {
  return typeof cases === "object" && cases !== null && !Array.isArray(cases) ? Object.keys(cases) : [];
}
