import { type Node, type ParseError, findNodeAtLocation, parseTree } from "jsonc-parser";
import type { ports } from "@portico/core";
import { foreignFileScopes } from "./file-scopes.ts";
import { AGENT_TEXT_BYTES } from "./limits.ts";

/** A problem with its place in the text. Lines and columns are counted from 1. */
export interface PlacedProblem {
  readonly severity: "error" | "warning";
  readonly line: number;
  readonly column: number;
  /** JSONPath. */
  readonly path: string;
  readonly message: string;
}

/** Everything that is wrong in a text. `before` is the text that it replaces, `userId` its author. */
export function checkText(
  texts: Pick<ports.AgentTexts, "check">,
  { text, before, userId }: { readonly text: string; readonly before: string | undefined; readonly userId: string | undefined },
): PlacedProblem[] {
  if (Buffer.byteLength(text) > AGENT_TEXT_BYTES) {
    return [placed(text, 0, { severity: "error", path: [], message: `The text has at most ${AGENT_TEXT_BYTES} bytes` })];
  }
  const found = [...texts.check(text), ...foreignFileScopes(text, before, userId)];
  if (found.length === 0) return [];
  const { root, fault } = treeOf(text);
  return found.map((problem) => placed(text, offsetOf(root, problem.path) ?? fault, problem));
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

function placed(text: string, offset: number, { severity, path, message }: ports.AgentTextProblem): PlacedProblem {
  const lines = text.slice(0, offset).split(/\r\n|\n|\r/);
  return { severity, line: lines.length, column: lines.at(-1)!.length + 1, path: toJsonPath(path), message };
}

function toJsonPath(path: ports.AgentTextProblem["path"]): string {
  return path.reduce<string>((around, key) => {
    if (typeof key === "number") return `${around}[${key}]`;
    return /^[A-Za-z_$][\w$]*$/.test(key) ? `${around}.${key}` : `${around}[${JSON.stringify(key)}]`;
  }, "$");
}
