import { structuredPatch } from "diff";

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "note";
  readonly text: string;
}

/** Lines that differ, with some lines around them. */
export interface DiffPart {
  /** Of the first line, in the text after the change, counted from 1. */
  readonly line: number;
  readonly lines: readonly DiffLine[];
}

export interface LineDiff {
  readonly parts: readonly DiffPart[];
  readonly added: number;
  readonly removed: number;
}

/** More differences take seconds to find. */
const MOST_EDITS = 3_000;
const AROUND = 3;
const KINDS: Readonly<Record<string, DiffLine["kind"]>> = { "+": "added", "-": "removed", " ": "same" };

/** Compares two texts by their lines. Undefined if too many lines differ. */
export function lineDiff(before: string, after: string): LineDiff | undefined {
  const patch = structuredPatch("", "", before, after, undefined, undefined, { context: AROUND, maxEditLength: MOST_EDITS });
  if (!patch) return undefined;
  const parts = patch.hunks.map(({ newStart, lines }) => ({ line: newStart, lines: lines.map(toLine) }));
  const count = (kind: DiffLine["kind"]) => parts.flatMap(({ lines }) => lines).filter((each) => each.kind === kind).length;
  return { parts, added: count("added"), removed: count("removed") };
}

function toLine(line: string): DiffLine {
  const kind = KINDS[line.charAt(0)];
  return kind ? { kind, text: line.slice(1) } : { kind: "note", text: line.slice(2) };
}
