import { printable } from "./terminal.ts";

/** The results of one file of cases. */
export interface FileResult {
  readonly file: string;
  readonly cases: readonly CaseResult[];
}

interface CaseResult {
  readonly name: string;
  readonly isOk: boolean;
  /** One line for each difference from the expectation. */
  readonly differences: readonly string[];
}

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

/** Prints the results, and sets the exit code of the process: 1 if a case failed. */
export async function printResults(results: readonly FileResult[], asJson: boolean | undefined): Promise<void> {
  const [{ EXIT }, { printableJson }] = await Promise.all([import("./exit-codes.ts"), import("./terminal.ts")]);
  console.log(asJson ? printableJson(results, 2) : caseLines(results));
  const isOk = results.every(({ cases }) => cases.every((each) => each.isOk));
  process.exitCode = isOk ? EXIT.ok : EXIT.failed;
}
