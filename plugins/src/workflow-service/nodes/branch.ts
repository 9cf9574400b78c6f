import type { ports } from "@portico/core";
import * as v from "valibot";
import { anyObject, caseName } from "../definition/document-schema.ts";

export const branchNode: ports.NodeRules = {
  type: "branch",
  input: v.strictObject({
    cases: v.pipe(
      anyObject,
      v.check((cases) => Object.keys(cases).length > 0, "There is at least one case"),
      v.description("CEL expressions by the name of their case: the first that is true is taken."),
    ),
    else: v.optional(
      v.pipe(caseName, v.description("The case that is taken where none is true; default: none, which fails the node.")),
    ),
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
};

function namesOf(cases: unknown): string[] {
  return typeof cases === "object" && cases !== null && !Array.isArray(cases) ? Object.keys(cases) : [];
}
