import { hash } from "node:crypto";
import { ports } from "@portico/core";
import type { Scalar } from "./field-path.ts";

/**
 * The end of a page: the order value and the ID of its last record. Later pages begin after it, even if records were added or
 * removed meanwhile.
 */
export interface Position {
  /** Null if the field is missing, or if the order is only by ID. */
  readonly value: Scalar;
  readonly id: string;
}

/** Identifies the query of a cursor: a short hash of the query without its page. */
export function queryTag(parts: readonly unknown[]): string {
  return hash("sha256", JSON.stringify(parts), "base64url").slice(0, 16);
}

/** The cursor of a position: base64url, opaque to callers. */
export function toCursor(tag: string, position: Position): string {
  return Buffer.from(JSON.stringify([tag, position.value, position.id])).toString("base64url");
}

/** The position of a cursor. Throws RecordCursorInvalid for an invalid cursor, or one of another query. */
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
  // Node decodes leniently: a valid cursor must encode back to the same text.
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
