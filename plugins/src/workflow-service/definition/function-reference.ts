import { FUNCTION_GROUPS } from "./functions/function-library.ts";

/** All functions of expressions with their examples, as Markdown. */
export function functionReference(): string {
  return FUNCTION_GROUPS.map(({ title, functions }) =>
    [
      `### ${title}`,
      "",
      "| function | | example |",
      "|---|---|---|",
      ...functions.map(({ usage, summary, example: [expression, value] }) =>
        row([code(usage), summary, `${code(expression)} is ${code(JSON.stringify(value))}`]),
      ),
    ].join("\n"),
  ).join("\n\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
