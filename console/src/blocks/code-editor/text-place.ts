import type { EditorState } from "@codemirror/state";

/** What is being written at the cursor. */
export interface TextPlace {
  readonly kind: "name" | "value";
  /** The path to the object whose name is written, or to the value. */
  readonly path: readonly (string | number)[];
  /** The part of the word before the cursor, and where it begins. */
  readonly word: string;
  readonly from: number;
}

interface Mark {
  readonly column: number;
  /** Undefined for `- `, the begin of an item. */
  readonly name: string | undefined;
}

/** By the indents of the lines above: a text that is being written has seldom a right tree. Lists and objects in one line are not followed. */
export function placeInYaml(state: EditorState, position: number): TextPlace | undefined {
  const line = state.doc.lineAt(position);
  const before = line.text.slice(0, position - line.from);
  const [lead] = /^(?:\s|- )*/.exec(before)!;
  const written = before.slice(lead.length);
  const dashes = marksOf(lead);
  const value = /^("?)([\w.$-]+)\1:\s+(\S*)$/.exec(written);
  const isWord = /^[\w.$-]*$/.test(written);
  if (!value && !isWord) return undefined;
  const above: Mark[][] = [];
  for (let at = line.number - 1; at >= 1; at--) above.push(marksOf(state.doc.line(at).text));
  const path = pathTo(dashes, lead.length, above);
  if (value) return { kind: "value", path: [...path, value[2]!], word: value[3]!, from: position - value[3]!.length };
  return { kind: "name", path, word: written, from: position - written.length };
}

function pathTo(dashes: readonly Mark[], column: number, above: readonly (readonly Mark[])[]): (string | number)[] {
  const path: (string | number)[] = [];
  let limit = column;
  // Within an item, a name at the dash's own column is the list's.
  let isItem = false;
  let index = 0;
  const pass = ({ column: at, name }: Mark) => {
    if (name === undefined && isItem && at === limit) index++;
    const isParent = at < limit || (isItem && at === limit && name !== undefined);
    if (!isParent) return;
    if (isItem) path.unshift(index);
    index = 0;
    isItem = name === undefined;
    if (name !== undefined) path.unshift(name);
    limit = at;
  };
  for (const mark of dashes.toReversed()) pass(mark);
  for (const marks of above) for (const mark of marks.toReversed()) pass(mark);
  if (isItem) path.unshift(index);
  return path;
}

function marksOf(line: string): Mark[] {
  const marks: Mark[] = [];
  let rest = line;
  let column = 0;
  for (;;) {
    const space = /^\s*/.exec(rest)![0].length;
    column += space;
    rest = rest.slice(space);
    if (!/^-(?:\s|$)/.test(rest)) break;
    marks.push({ column, name: undefined });
    column++;
    rest = rest.slice(1);
  }
  const name = /^(["']?)([^"'#:\s][^"':]*)\1:(?:\s|$)/.exec(rest)?.[2];
  return name === undefined ? marks : [...marks, { column, name }];
}

/** By the brackets before the cursor: a text that is being written has seldom a right tree. */
export function placeInJson(state: EditorState, position: number): TextPlace | undefined {
  const before = state.sliceDoc(0, position);
  let from = position;
  while (from > 0 && /[\w.$-]/.test(before[from - 1]!)) from--;
  const word = before.slice(from);
  // Of each open object the name that is being given a value, of each open list the number of its item.
  const open: (string | number | undefined)[] = [];
  let name: string | undefined;
  for (const [token] of before
    .slice(0, from)
    .replace(/"$/, "")
    .matchAll(/"(?:[^"\\]|\\[^]?)*"?|[{}[\],:]/g)) {
    const last = open.at(-1);
    if (token === "{") open.push(undefined);
    else if (token === "[") open.push(0);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":" && open.length > 0) open[open.length - 1] = name;
    else if (token === "," && open.length > 0) open[open.length - 1] = typeof last === "number" ? last + 1 : undefined;
    else if (token !== ",") name = stringOf(token);
  }
  if (open.length === 0) return undefined;
  const isName = open.at(-1) === undefined;
  const path = (isName ? open.slice(0, -1) : open).filter((step) => step !== undefined);
  return { kind: isName ? "name" : "value", path, word, from };
}

function stringOf(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.replaceAll('"', "");
  }
}
