import { ports } from "@portico/core";

/** Where a page of entries ends: the day, and the place in the day. */
export interface AuditPlace {
  readonly day: string;
  readonly after?: string | undefined;
}

/** The text of a place, opaque to callers. */
export function toAuditCursor({ day, after }: AuditPlace): string {
  return Buffer.from(JSON.stringify([day, after ?? ""])).toString("base64url");
}

/** The place of a text. Throws AuditCursorInvalid. */
export function readAuditCursor(cursor: string): AuditPlace {
  try {
    const [day, after, ...more] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    if (typeof day === "string" && /^\d{4}-\d\d-\d\d$/.test(day) && typeof after === "string" && more.length === 0)
      return { day, after: after === "" ? undefined : after };
  } catch {
    // Answered below.
  }
  throw new ports.AuditCursorInvalid("This is not a cursor of the audit");
}
