import type { TokenizerExtension, Tokens } from "marked";

/** A formula in TeX. */
export interface MathToken extends Tokens.Generic {
  readonly type: "math";
  /** Without its delimiters. */
  readonly text: string;
  /** On lines of its own. */
  readonly isBlock: boolean;
}

/** Longer formulas are shown as they were written: a renderer takes time and elements for each part. */
const FORMULA_CHARACTERS = 4_000;

/** Whether a text can have formulas at all. Most texts have none. */
export function mayHaveMath(text: string): boolean {
  return text.includes("$") || text.includes("\\(") || text.includes("\\[");
}

/** Formulas between `$`, `$$`, `\(` and `\)`, or `\[` and `\]`. */
export const mathExtensions: readonly TokenizerExtension[] = [
  {
    name: "math",
    level: "block",
    start: (text) => placeOf(text, /\n(?:\$\$|\\\[)/),
    tokenizer(text) {
      const indent = text.length - text.trimStart().length;
      const math = indent < 4 ? readBlock(text.slice(indent)) : undefined;
      const end = math && lineEnd(text, indent + math.raw.length);
      return end === undefined ? undefined : { ...math!, raw: text.slice(0, end) };
    },
  },
  {
    name: "math",
    level: "inline",
    start: (text) => placeOf(text, /\$|\\[([]/),
    tokenizer: (text) => readBlock(text) ?? (text.startsWith("\\(") ? delimited(text, "\\(", "\\)") : readDollars(text)),
  },
];

function readBlock(text: string): MathToken | undefined {
  const math = text.startsWith("$$") ? delimited(text, "$$", "$$") : delimited(text, "\\[", "\\]");
  return math && { ...math, isBlock: true };
}

function delimited(text: string, open: string, close: string): MathToken | undefined {
  if (!text.startsWith(open)) return undefined;
  const end = closeOf(text, open.length, close);
  return end === undefined ? undefined : tokenOf(text, open.length, end, close.length);
}

/**
 * `$x$` as pandoc reads it, because dollars are also money and variables: on one line, no space inside of the delimiters, and no letter or
 * digit after the second. `$5 and $6` is not a formula.
 */
function readDollars(text: string): MathToken | undefined {
  if (!/^\$[^\s$]/.test(text)) return undefined;
  const end = closeOf(text, 1, "$");
  if (end === undefined || /\n|\s$/.test(text.slice(0, end))) return undefined;
  return /[\p{L}\d]/u.test(text.charAt(end + 1)) ? undefined : tokenOf(text, 1, end, 1);
}

/** The first place of `close`, outside of escapes and in the same paragraph. */
function closeOf(text: string, from: number, close: string): number | undefined {
  const near = text.slice(0, from + FORMULA_CHARACTERS);
  for (let at = from; ;) {
    const found = near.indexOf(close, at);
    if (found < 0) return undefined;
    if (!isEscaped(near, from, found)) return PARAGRAPH_END.test(near.slice(from, found)) ? undefined : found;
    at = found + 1;
  }
}

function tokenOf(text: string, from: number, end: number, closing: number): MathToken | undefined {
  const tex = text.slice(from, end).trim();
  return tex === "" ? undefined : { type: "math", raw: text.slice(0, end + closing), text: tex, isBlock: false };
}

const PARAGRAPH_END = /\n[ \t]*\n/;

function isEscaped(text: string, from: number, at: number): boolean {
  let slashes = 0;
  while (at - slashes > from && text[at - slashes - 1] === "\\") slashes++;
  return slashes % 2 === 1;
}

function placeOf(text: string, mark: RegExp): number | undefined {
  const at = text.search(mark);
  return at < 0 ? undefined : at;
}

/** The place behind the line, if the rest of it is empty. */
function lineEnd(text: string, from: number): number | undefined {
  const at = text.indexOf("\n", from);
  const end = at < 0 ? text.length : at + 1;
  return text.slice(from, end).trim() === "" ? end : undefined;
}
