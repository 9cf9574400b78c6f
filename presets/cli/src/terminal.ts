import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { visibleJson, visibleText } from "@portico/core/contract";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/**
 * Asks on the terminal for a text, and continues only if exactly this text is typed. Throws CommandFailed: 64 without a terminal, 1 for
 * another text, and for the end of the input.
 */
export async function confirm(question: string, expected: string): Promise<void> {
  if (!process.stdin.isTTY) throw new CommandFailed("Use --yes to confirm without a terminal", EXIT.usage);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Without this, the question would stay open after Ctrl-D, and the process would end as if it had succeeded.
  const ended = once(terminal, "close").then(() => undefined);
  try {
    const answer = await Promise.race([terminal.question(printable(question)), ended]);
    if (answer?.trim() !== expected.trim()) throw new CommandFailed("Nothing was removed", EXIT.failed);
  } finally {
    terminal.close();
  }
}

/**
 * Untrusted text as one line for a terminal. Control characters become blanks: they could move the cursor, or do worse. Hidden
 * characters are shown (`visibleText`).
 */
export function printable(text: string): string {
  return visibleText(text.replaceAll(/\p{Cc}/gu, " "));
}

/** JSON for a terminal, and for programs: hidden characters are escaped (`visibleJson`). */
export const printableJson = visibleJson;

/** Quotes a text as one word of a shell command line. */
export function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Columns of text. Each column is as wide as its widest cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((cells) => cells.map(printable));
  const widths = head.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
