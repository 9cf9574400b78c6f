import { Script } from "node:vm";
import type { ports } from "@portico/core";

export interface CodeJob {
  readonly source: string;
  /** JSON. Absent if the node has no input. */
  readonly input?: string | undefined;
}

/** Lines before the source in `scriptOf`. */
const LINES_BEFORE = 1;

/** The function with the source as its body. */
export function scriptOf(source: string): string {
  return `(async (input) => {"use strict";\n${source}\n})`;
}

/** Syntax errors, by this process's own parser. The script does not run. */
export function scriptFaults(source: string): ports.NodeFault[] {
  try {
    void new Script(scriptOf(source), { filename: "script" });
    return [];
  } catch (error) {
    const { message, stack = "" } = error as Error;
    const line = Number(/^script:(\d+)/.exec(stack)?.[1]) - LINES_BEFORE;
    // V8 reports an unexpected end past the last line.
    const last = source.split("\n").length;
    return [{ path: ["source"], message: line >= 1 ? `line ${Math.min(line, last)}: ${message}` : message }];
  }
}

/** The source line where a stack begins. */
export function placeIn(stack: string): string {
  const line = Number(/\(?script:(\d+)/.exec(stack)?.[1]) - LINES_BEFORE;
  return line >= 1 ? `line ${line}` : "";
}
