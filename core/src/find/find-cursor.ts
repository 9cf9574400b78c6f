import { maxCharacters } from "../characters.ts";
import { hash } from "node:crypto";
import * as v from "valibot";
import type { FindPlace } from "./find-page.ts";

/** Characters of a cursor: more than any has. */
const CURSOR_CHARACTERS = 1024;
const parts = v.strictTuple([
  v.string(),
  v.pipe(v.string(), v.isoTimestamp()),
  v.pipe(v.string(), maxCharacters(256), v.regex(/^[A-Za-z0-9_-]*$/)),
]);

/**
 * A text from which the same search continues after a place. It stays valid while subjects are added and removed. `asked` is everything that
 * the search asks, in any form that is equal for equal searches.
 */
export function toFindCursor(asked: string, { at, id }: FindPlace): string {
  return Buffer.from(JSON.stringify([tagOf(asked), at, id])).toString("base64url");
}

/** The place of a cursor, which may have an empty ID. Undefined for an invalid cursor, and for one of another search. IDs are letters, digits, `_` and `-`. */
export function readFindCursor(asked: string, cursor: string): FindPlace | undefined {
  if (cursor.length > CURSOR_CHARACTERS) return undefined;
  const bytes = Buffer.from(cursor, "base64url");
  if (bytes.toString("base64url") !== cursor) return undefined;
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), parts), bytes.toString());
  if (!parsed.success) return undefined;
  const [tag, at, id] = parsed.output;
  return tag === tagOf(asked) ? { at, id } : undefined;
}

function tagOf(asked: string): string {
  return hash("sha256", asked, "base64url").slice(0, 12);
}
