import { withoutByteOrderMark } from "@portico/core/contract";
import { type Node, parseTree } from "jsonc-parser";

/** The layout of members: the line break, their indentation, and the additional indentation per level. */
interface Lines {
  readonly eol: string;
  readonly margin: string;
  readonly unit: string;
}

const LINE_START = /(\r\n|\n|\r)([ \t]*)$/;

/**
 * Set one member of a JSON text, or remove it with `undefined`. Missing objects on the path are created. All other characters stay
 * unchanged. New members get the layout of their neighbours. (`modify` of jsonc-parser formats whole lines again; if the text is one line,
 * that is the whole text.)
 *
 * If a name occurs twice, the first member is edited, but `JSON.parse` reads the last one. Callers that cannot exclude this must check the
 * result. Throws TypeError if a value on the path is not an object, and RangeError if the text nests too deeply.
 */
export function editJsonText(text: string, path: readonly string[], value: unknown): string {
  const unmarked = withoutByteOrderMark(text);
  if (unmarked !== text) return text.slice(0, 1) + editJsonText(unmarked, path, value);
  let object = parseTree(text);
  for (const [depth, key] of path.entries()) {
    if (object?.type !== "object") throw new TypeError("The path leads through a value that is not an object");
    const member = object.children?.find(({ children }) => children?.[0]?.value === key);
    const rest = path.slice(depth + 1);
    if (!member) return value === undefined ? text : insert(text, object, key, nest(rest, value));
    if (rest.length === 0) return value === undefined ? remove(text, member) : replace(text, member, value);
    object = member.children?.[1];
  }
  return text;
}

function insert(text: string, object: Node, key: string, value: unknown): string {
  const last = object.children?.at(-1);
  const owner = object.parent;
  const beside = last ?? owner;
  const lines = beside && linesOf(text, beside);
  if (last) {
    const gap = lines ? lines.eol + lines.margin : gapBefore(text, last);
    return splice(text, endOf(last), endOf(last), `,${gap}${memberText(text, last, key, value, lines)}`);
  }
  const inner = lines && { ...lines, margin: lines.margin + lines.unit };
  const [open, close] = lines && inner ? [inner.eol + inner.margin, lines.eol + lines.margin] : ["", ""];
  const member = memberText(text, owner, key, value, inner);
  return splice(text, object.offset, endOf(object), `{${open}${member}${close}}`);
}

function replace(text: string, member: Node, value: unknown): string {
  const old = member.children![1]!;
  const lines = linesOf(text, member);
  const wasInLine = old.children?.length !== 0 && !/[\r\n]/.test(text.slice(old.offset, endOf(old)));
  const separator = `,${lines ? " " : gapBefore(text, member)}`;
  const written =
    wasInLine && Array.isArray(value)
      ? `[${value.map((item) => JSON.stringify(item)).join(separator)}]`
      : valueText(value, wasInLine ? undefined : lines);
  return splice(text, old.offset, endOf(old), written);
}

/** Removes the member, its comma, and the white space around it. */
function remove(text: string, member: Node): string {
  const { previous, next } = besides(member);
  if (previous) return splice(text, endOf(previous), endOf(member), "");
  if (next) return splice(text, member.offset, next.offset, "");
  return splice(text, member.parent!.offset, endOf(member.parent!), "{}");
}

function memberText(text: string, beside: Node | undefined, key: string, value: unknown, lines: Lines | undefined): string {
  const [name, its] = beside?.children ?? [];
  const colon = name && its ? text.slice(endOf(name), its.offset) : ":";
  return JSON.stringify(key) + (/[\r\n]/.test(colon) ? ": " : colon) + valueText(value, lines);
}

function valueText(value: unknown, lines: Lines | undefined): string {
  if (!lines) return JSON.stringify(value);
  const { eol, margin, unit } = lines;
  // JSON escapes tabs and line breaks inside strings, so each one in this text belongs to the layout.
  return JSON.stringify(value, undefined, "\t").replaceAll(
    /\n(\t*)/g,
    (_, { length }: string) => eol + margin + unit.repeat(length),
  );
}

/** Undefined if the member does not begin a line. */
function linesOf(text: string, member: Node): Lines | undefined {
  const [, eol, margin] = LINE_START.exec(gapBefore(text, member)) ?? [];
  if (eol === undefined || margin === undefined) return undefined;
  return { eol, margin, unit: unitOf(text, member) };
}

/** The indentation of the outermost members, which is one level. */
function unitOf(text: string, node: Node): string {
  let root = node;
  while (root.parent) root = root.parent;
  for (const member of root.children ?? []) {
    const margin = LINE_START.exec(gapBefore(text, member))?.[2];
    if (margin !== undefined) return margin;
  }
  return "  ";
}

/** The white space between a member and the comma or the bracket before it. */
function gapBefore(text: string, member: Node): string {
  const { previous } = besides(member);
  const between = text.slice(previous ? endOf(previous) : member.parent!.offset + 1, member.offset);
  return between.slice(between.indexOf(",") + 1);
}

function besides(member: Node): { readonly previous: Node | undefined; readonly next: Node | undefined } {
  const members = member.parent?.children ?? [];
  const index = members.indexOf(member);
  return { previous: members[index - 1], next: members[index + 1] };
}

function nest(path: readonly string[], value: unknown): unknown {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
}

function splice(text: string, from: number, to: number, piece: string): string {
  return text.slice(0, from) + piece + text.slice(to);
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}
