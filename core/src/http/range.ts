/** Both ends belong to it. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The part of `size` bytes that a `Range` header asks for: one range, from one byte to another, to the end, or the last so many. An end past
 * the last byte is the last byte (open points 10). Anything else cannot be satisfied: several ranges, other units, what is no range, and every range
 * of nothing (specification 4.5, rule 8, where HTTP would have some of them ignored).
 */
export function readRange(header: string | undefined, size: number): ByteRange | "whole" | "unsatisfiable" {
  if (header === undefined) return "whole";
  const [, from = "", to = ""] = RANGE.exec(header) ?? [];
  if (from === "" && to === "") return "unsatisfiable";
  // Numbers that are too long to be exact are past every file.
  const start = from === "" ? Math.max(size - Number(to), 0) : Number(from);
  const end = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1);
  return start > end ? "unsatisfiable" : { start, end };
}

/** Units are compared without case (RFC 9110, 14.1). */
const RANGE = /^[ \t]*bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;
