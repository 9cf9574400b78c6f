import { create, parse } from "content-disposition";
import { firstCharacters } from "../kit/text.ts";

const NAME_CHARACTERS = 240;
const MIME_TYPE_CHARACTERS = 128;

/**
 * The name under which a file is stored (specification 2.7), from what its sender calls it. Path separators (`/` and `\`), control characters, line breaks and
 * marks of writing direction are removed; such marks can make a program look like an image. The name has 1-240 characters. Longer names
 * are cut at the end. Joiners stay, because some scripts and emoji need them. If only invisible characters or
 * dots remain, the name is `fallback`. A valid name stays unchanged.
 */
export function cleanFileName(name: string, fallback = "attachment"): string {
  const clean = firstCharacters(NAME_CHARACTERS, name.toWellFormed().replaceAll(/[/\\\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, ""));
  return /^[.\p{Z}\p{Cf}]*$/u.test(clean) ? fallback : clean;
}

/**
 * The declared type of a file (specification 2.7), in lowercase and without parameters. `application/octet-stream` if no type
 * was declared, if it is invalid (RFC 6838), or if it has more than 128 characters.
 */
export function cleanMediaType(type: string | undefined): string {
  const essence = type?.split(";", 1)[0]?.trim() ?? "";
  return essence.length <= MIME_TYPE_CHARACTERS && MIME_TYPE.test(essence) ? essence.toLowerCase() : "application/octet-stream";
}

/**
 * Whether a media type is of a text: `text/*`, JSON, XML, YAML, JavaScript, forms, NDJSON and GraphQL. In lowercase and without parameters, as
 * `cleanMediaType` returns it.
 */
export function isTextMediaType(type: string): boolean {
  return TEXT_TYPE.test(type);
}

const TEXT_TYPE =
  /^text\/|^application\/(?:json|xml|javascript|x-www-form-urlencoded|x-ndjson|graphql|yaml|x-yaml)$|\+(?:json|xml|yaml)$/;
const MIME_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i;

/**
 * A `Content-Disposition` header (RFC 6266) that is valid for every name: with quotes, line ends, control characters, any script,
 * and unpaired surrogates, which become U+FFFD. A name beyond plain ASCII is sent twice. In the copy for old clients, `?`
 * replaces the other characters.
 */
export function contentDisposition(type: "attachment" | "inline", name: string): string {
  return create(name.toWellFormed(), { type });
}

/** The file name in a `Content-Disposition` header of another server, as it is: clean it before use. Undefined without one. */
export function dispositionName(header: string): string | undefined {
  try {
    return parse(header).parameters["filename"];
  } catch {
    return undefined;
  }
}
