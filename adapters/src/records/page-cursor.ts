import { hash } from "node:crypto";
import { ports } from "@portico/core";
import type { Scalar } from "./field-path.ts";

/**
 * Where a page ended: the order value and the id of its last record. Later pages begin behind it, whatever came or went
 * meanwhile.
 */
export interface Position {
  /** Null where the field is missing, and where the order is by id alone. */
  readonly value: Scalar;
  readonly id: string;
}

/** What a cursor belongs to: a short name of everything about a query but its page. */
export function queryTag(parts: readonly unknown[]): string {
  return hash("sha256", JSON.stringify(parts), "base64url").slice(0, 16);
}

/** The cursor of a position: base64url, opaque to whoever carries it. */
export function toCursor(tag: string, position: Position): string {
  return Buffer.from(JSON.stringify([tag, position.value, position.id])).toString("base64url");
}

/** The position of a cursor. Throws RecordCursorInvalid when it is no cursor, or one of another query. */
export function parseCursor(tag: string, cursor: string): Position {
  const parts = decode(cursor);
  if (Array.isArray(parts) && parts.length === 3) {
    const [found, value, id] = parts as unknown[];
    if (found === tag && isScalar(value) && typeof id === "string") return { value, id };
  }
  throw new ports.RecordCursorInvalid("The cursor does not belong to this query");
}

function decode(cursor: string): unknown {
  const bytes = Buffer.from(String(cursor), "base64url");
  // Node decodes leniently: only what encodes back to the same text was a cursor.
  if (bytes.toString("base64url") !== cursor) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

function isScalar(value: unknown): value is Scalar {
  return value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
