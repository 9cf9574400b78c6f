/** Both ends are inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The part of `size` bytes that a `Range` header asks for: one range, from one byte to another, from one byte to the end, or the
 * last N bytes. An end past the last byte is the last byte (open points 10). Any other range cannot be satisfied: several ranges,
 * other units, invalid ranges, and every range of an empty file (specification 4.5, rule 8, where HTTP would ignore some of
 * them).
 */
export function readRange(header: string | undefined, size: number): ByteRange | "whole" | "unsatisfiable" {
  if (header === undefined) return "whole";
  const [, from = "", to = ""] = RANGE.exec(header) ?? [];
  if (from === "" && to === "") return "unsatisfiable";
  // A number that is too long to be exact is beyond every file.
  const start = from === "" ? Math.max(size - Number(to), 0) : Number(from);
  const end = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1);
  return start > end ? "unsatisfiable" : { start, end };
}

/** Units are case-insensitive (RFC 9110, 14.1). */
const RANGE = /^[ \t]*bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;
