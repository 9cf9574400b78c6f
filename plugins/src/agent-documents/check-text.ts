import { type Node, type ParseError, findNodeAtLocation, parseTree } from "jsonc-parser";
import type { ports } from "@portico/core";
import { withoutByteOrderMark } from "@portico/core/kit";
import { foreignFileScopes } from "./file-scopes.ts";
import { AGENT_TEXT_BYTES, TEXT_PROBLEMS } from "./limits.ts";

/** A problem with its place in the text. Lines and columns are counted from 1. */
export interface PlacedProblem {
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** JSONPath. */
  readonly path: string;
  readonly message: string;
}

/** What is wrong in a text: its errors and then its warnings, `TEXT_PROBLEMS` at most. `before` is the text that it replaces, `userId` its author. */
export function checkText(
  texts: Pick<ports.AgentTexts, "check">,
  {
    text,
    before,
    userId,
    named = [],
  }: {
    readonly text: string;
    readonly before: string | undefined;
    readonly userId: string | undefined;
    /** Problems of what the text names. */
    readonly named?: readonly ports.AgentTextProblem[];
  },
): PlacedProblem[] {
  if (Buffer.byteLength(text) > AGENT_TEXT_BYTES) {
    return [placed([0], 0, { severity: "error", path: [], message: `The text has at most ${AGENT_TEXT_BYTES} bytes` })];
  }
  const found = [...texts.check(text), ...foreignFileScopes(text, before, userId), ...named];
  if (found.length === 0) return [];
  // A text is refused for its errors, so warnings never take their places.
  const told = [...found.filter(isError), ...found.filter((each) => !isError(each))].slice(0, TEXT_PROBLEMS);
  // Offsets are those of the text without its byte order mark, which editors do not count either.
  const shown = withoutByteOrderMark(text);
  const { root, fault } = treeOf(shown);
  const lines = lineStarts(shown);
  return told.map((problem) => placed(lines, offsetOf(root, problem.path) ?? fault, problem));
}

/** The tree of a text, and where it stops being JSON. */
function treeOf(text: string): { readonly root: Node | undefined; readonly fault: number } {
  const errors: ParseError[] = [];
  try {
    const root = parseTree(text, errors, { disallowComments: true, allowTrailingComma: false });
    const fault = errors.length > 0 ? Math.min(...errors.map(({ offset }) => offset)) : 0;
    return { root: errors.length > 0 ? undefined : root, fault };
  } catch {
    // The text nests too deeply for the stack.
    return { root: undefined, fault: 0 };
  }
}

/** The place of a value, or of the nearest value around it. A missing key has no place. */
function offsetOf(root: Node | undefined, path: ports.AgentTextProblem["path"]): number | undefined {
  if (!root) return undefined;
  for (let length = path.length; length > 0; length--) {
    const node = findNodeAtLocation(root, path.slice(0, length));
    // The key is easier to find than its value.
    if (node) return node.parent?.type === "property" ? node.parent.offset : node.offset;
  }
  return root.offset;
}

function isError({ severity }: ports.AgentTextProblem): boolean {
  return severity === "error";
}

/** The offset at which each line begins. */
function lineStarts(text: string): readonly number[] {
  return [0, ...Array.from(text.matchAll(/\r\n|\n|\r/g), ({ index, 0: end }) => index + end.length)];
}

function placed(lines: readonly number[], offset: number, { severity, path, message }: ports.AgentTextProblem): PlacedProblem {
  const line = lines.findLastIndex((start) => start <= offset);
  return { severity, line: line + 1, column: offset - lines[line]! + 1, path: toJsonPath(path), message };
}

function toJsonPath(path: ports.AgentTextProblem["path"]): string {
  return path.reduce<string>((around, key) => {
    if (typeof key === "number") return `${around}[${key}]`;
    return /^[A-Za-z_$][\w$]*$/.test(key) ? `${around}.${key}` : `${around}[${JSON.stringify(key)}]`;
  }, "$");
}
