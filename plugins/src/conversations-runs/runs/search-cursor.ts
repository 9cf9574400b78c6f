import { hash } from "node:crypto";
import type { FindPlace } from "@portico/core";
import * as v from "valibot";
import { RUN_ID_CHARACTERS } from "../limits.ts";
import type { RunSearch } from "./run-search.ts";

/** Characters of a cursor: more than any has. */
const CURSOR_CHARACTERS = 512;
const parts = v.strictTuple([
  v.string(),
  v.pipe(v.string(), v.isoTimestamp()),
  v.pipe(v.string(), v.maxLength(RUN_ID_CHARACTERS), v.regex(/^[A-Za-z0-9_-]+$/)),
]);

/** A text from which the same search continues after a place. It stays valid while runs are added and removed. */
export function toSearchCursor(search: RunSearch, { at, id }: FindPlace): string {
  return Buffer.from(JSON.stringify([tagOf(search), at, id])).toString("base64url");
}

/** The place of a cursor. Undefined for an invalid cursor, and for one of another search. */
export function readSearchCursor(search: RunSearch, cursor: string): FindPlace | undefined {
  if (cursor.length > CURSOR_CHARACTERS) return undefined;
  const bytes = Buffer.from(cursor, "base64url");
  if (bytes.toString("base64url") !== cursor) return undefined;
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), parts), bytes.toString());
  if (!parsed.success) return undefined;
  const [tag, at, id] = parsed.output;
  return tag === tagOf(search) ? { at, id } : undefined;
}

function tagOf({ userId, agentId, status, isBackground, from, before, words }: RunSearch): string {
  const more = isBackground === undefined ? [] : [isBackground];
  const asked = JSON.stringify([userId, agentId, status, from, before, [...words].sort(), ...more]);
  return hash("sha256", asked, "base64url").slice(0, 12);
}
