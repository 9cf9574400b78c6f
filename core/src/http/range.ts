/** Positions of the first and the last byte, both inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const RANGE = /^bytes=(?:(\d{1,16})-(\d{0,16})|-(\d{1,16}))$/;

/**
 * What a `Range` asks for of so many bytes: one range, whose end may lie behind the last byte. Several ranges, other units, nonsense, and what
 * begins behind the end are unsatisfiable (specification 4.5, rule 8).
 */
export function readRange(header: string | undefined, size: number): ByteRange | "whole" | "unsatisfiable" {
  if (header === undefined) return "whole";
  const [, first, last, suffix] = RANGE.exec(header) ?? [];
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size - 1 };
  }
  if (first === undefined) return "unsatisfiable";
  const start = Number(first);
  const end = last === "" || last === undefined ? size - 1 : Math.min(Number(last), size - 1);
  const isBackwards = last !== "" && last !== undefined && Number(last) < start;
  return start >= size || isBackwards ? "unsatisfiable" : { start, end };
}
