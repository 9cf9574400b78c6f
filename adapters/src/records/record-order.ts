import type { Scalar } from "./field-path.ts";
import type { Position } from "./page-cursor.ts";

/**
 * Compares two records by the port's order: missing values, then numbers (false as 0, true as 1), then texts by their UTF-8 bytes, and equal
 * values by id. Negative if `a` comes first. For a backend whose technology does not sort by itself: `rows.sort((a, b) => compareOrder(a, b, plan))`.
 */
export function compareOrder(a: Position, b: Position, { descending = false }: { readonly descending?: boolean } = {}): number {
  return (descending ? -1 : 1) * (compareScalars(a.value, b.value) || compareText(a.id, b.id));
}

function compareScalars(a: Scalar, b: Scalar): number {
  if (typeof a === "string" && typeof b === "string") return compareText(a, b);
  return rank(a) - rank(b) || Math.sign(Number(a) - Number(b));
}

function rank(value: Scalar): number {
  if (value === null) return 0;
  return typeof value === "string" ? 2 : 1;
}

/** By UTF-8 bytes, which is by code point; JavaScript's own `<` puts U+10000 and above before U+E000. */
function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
