const NAME_CHARACTERS = 240;
const MIME_CHARACTERS = 128;
const FALLBACK_NAME = "attachment";
const FALLBACK_TYPE = "application/octet-stream";
/** Separators of paths, control characters, and characters that make a name look like another. */
const REMOVED = /[/\\\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const MIME_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/;

/** A file's name as it is kept: without path separators and control characters, at most 240 characters, never empty (specification 2.7). */
export function cleanName(name: string): string {
  const cleaned = name.toWellFormed().replaceAll(REMOVED, "").trim();
  // Not through the middle of a character.
  const short = cleaned
    .slice(0, NAME_CHARACTERS)
    .replace(/[\ud800-\udbff]$/, "")
    .trim();
  return /^\.*$/.test(short) ? FALLBACK_NAME : short;
}

/** What a part says that it is, without parameters, where that is a media type of at most 128 characters (specification 2.7). */
export function cleanMimeType(type: string): string {
  const essence = type.split(";", 1)[0]!.trim().toLowerCase();
  return essence.length <= MIME_CHARACTERS && MIME_TYPE.test(essence) ? essence : FALLBACK_TYPE;
}
