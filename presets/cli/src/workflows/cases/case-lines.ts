import { printable } from "../../terminal/printable.ts";
import type { FileResult } from "./test-definitions.ts";

/** The results for a person: one line for each case, followed by its differences, and a summary. */
export function caseLines(results: readonly FileResult[]): string {
  const lines = results.flatMap(({ file, cases }) =>
    cases.flatMap(({ name, isOk, differences }) => [
      `${isOk ? "ok" : "FAILED"}  ${file}: ${name}`,
      ...differences.map((difference) => `        ${difference}`),
    ]),
  );
  const cases = results.flatMap((result) => result.cases);
  const failed = cases.filter(({ isOk }) => !isOk).length;
  return [...lines.map(printable), `${cases.length - failed} passed, ${failed} failed`].join("\n");
}
