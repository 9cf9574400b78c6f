import type { Component } from "svelte";
import type { Tone } from "./StatusBadge.svelte";

/** One line of a waterfall: a part of something that took time. */
export interface WaterfallRow {
  /** Unique in the waterfall. */
  readonly key: string;
  readonly title: string;
  /** What else is known of it, in a few words. */
  readonly about?: string;
  /** Its state, in words; the tone has the same meaning. */
  readonly status?: string;
  readonly tone: Tone;
  readonly icon?: Component;
  /** How long it took, in words. */
  readonly took?: string;
  /** Its time, in percent of the whole: the start, the length, and the part of the length before its first result. */
  readonly bar?: { readonly from: number; readonly width: number; readonly first?: number };
  /** It did not happen. */
  readonly isFaint?: boolean;
  /** The lines inside of it. Absent: it cannot be opened. */
  readonly rows?: readonly WaterfallRow[];
  /** Whether it is open until the user decides. */
  readonly isOpen?: boolean;
}

/** A line that is shown, at its depth from 1. */
export interface ShownRow {
  readonly row: WaterfallRow;
  readonly level: number;
  readonly isOpen: boolean | undefined;
  readonly parent: string | undefined;
  /** Its position among its siblings, from 1, and their number. */
  readonly position: number;
  readonly siblings: number;
}

/** The lines that are shown, in order: those of closed lines are not. */
export function shownRows(
  rows: readonly WaterfallRow[],
  opened: Readonly<Record<string, boolean>>,
  level = 1,
  parent?: string,
): readonly ShownRow[] {
  return rows.flatMap((row, index) => {
    const isOpen = row.rows && (opened[row.key] ?? row.isOpen ?? false);
    const shown: ShownRow = { row, level, isOpen, parent, position: index + 1, siblings: rows.length };
    return [shown, ...(isOpen ? shownRows(row.rows!, opened, level + 1, row.key) : [])];
  });
}
