import { Script } from "node:vm";
import type { ports } from "@portico/core";

export interface CodeJob {
  readonly source: string;
  /** JSON; absent where the node has no input. */
  readonly input?: string | undefined;
}

/** Lines in front of the source in `scriptOf`. */
const LINES_BEFORE = 1;

/** The function whose body the source is. */
export function scriptOf(source: string): string {
  return `(async (input) => {"use strict";\n${source}\n})`;
}

/** Syntax errors, by this process's own parser: nothing is run. */
export function scriptFaults(source: string): ports.NodeFault[] {
  try {
    void new Script(scriptOf(source), { filename: "script" });
    return [];
  } catch (error) {
    const { message, stack = "" } = error as Error;
    const line = Number(/^script:(\d+)/.exec(stack)?.[1]) - LINES_BEFORE;
    // An end that comes too early is seen behind the source.
    const last = source.split("\n").length;
    return [{ path: ["source"], message: line >= 1 ? `line ${Math.min(line, last)}: ${message}` : message }];
  }
}

/** The source's line that a stack begins in. */
export function placeIn(stack: string): string {
  const line = Number(/\(?script:(\d+)/.exec(stack)?.[1]) - LINES_BEFORE;
  return line >= 1 ? `line ${line}` : "";
}
