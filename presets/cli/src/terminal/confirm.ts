import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { printable } from "./printable.ts";

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
