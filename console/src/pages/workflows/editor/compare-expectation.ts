import { stringify } from "yaml";
import type { TestedCase } from "./stored-definition.ts";
import type { Expectation } from "./test-cases.ts";

/** In place of outputs that are too long to be sent. */
const OMITTED = "(too long to be shown)";

/** Both sides as texts, with the parts of the result that the case names. Undefined for a case that expects only a status. */
export function compareExpectation(
  { status, outputs, error, nodes }: Expectation,
  found: NonNullable<TestedCase["found"]>,
): { readonly expected: string; readonly got: string } | undefined {
  if (outputs === undefined && !error && !nodes) return undefined;
  // An error that the case does not name explains the other differences.
  const foundError = error && found.error ? sameKeys(error, found.error) : found.error;
  return {
    expected: written({ status, error, outputs, nodes }),
    got: written({
      status: found.status,
      error: foundError,
      outputs: outputs === undefined ? undefined : found.outputsOmitted ? OMITTED : found.outputs,
      nodes: nodes && sameKeys(nodes, found.nodes),
    }),
  };
}

function sameKeys(of: object, from: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.keys(of).flatMap((key) => (Object.hasOwn(from, key) ? [[key, from[key]]] : [])));
}

/** Parts in their order, each with sorted keys. */
function written(parts: Readonly<Record<string, unknown>>): string {
  return Object.entries(parts)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => stringify({ [name]: value }, { sortMapEntries: true, lineWidth: 0 }))
    .join("");
}
