const NAME_CHARACTERS = 240;
const MIME_TYPE_CHARACTERS = 128;

/**
 * What an uploaded file is called from now on (specification 2.7), whatever its sender called it: without path separators (`/` and `\`),
 * without control characters, ends of lines, and the marks that change the direction of writing, which let a program pass for an image;
 * 1-240 characters of UTF-16, cut at the end and never within one. Joiners stay: scripts and emoji are written with them. Where nothing is
 * left that can be seen, or dots alone, it is `attachment`. A clean name stays as it is.
 */
export function cleanName(name: string): string {
  const clean = name
    .toWellFormed()
    .replaceAll(/[/\\\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "")
    .slice(0, NAME_CHARACTERS)
    // The half that is left of a character that did not fit.
    .replace(/[\ud800-\udbff]$/, "");
  return /^[.\p{Z}\p{Cf}]*$/u.test(clean) ? "attachment" : clean;
}

/**
 * The declared type of a file (specification 2.7), in lowercase and without parameters. `application/octet-stream` if no type
 * was declared, if it is invalid (RFC 6838), or if it has more than 128 characters.
 */
export function cleanMimeType(type: string | undefined): string {
  const essence = type?.split(";", 1)[0]?.trim() ?? "";
  return essence.length <= MIME_TYPE_CHARACTERS && MIME_TYPE.test(essence) ? essence.toLowerCase() : "application/octet-stream";
}

const MIME_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i;
