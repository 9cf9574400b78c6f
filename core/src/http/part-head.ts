import { MIMEType } from "node:util";
import { parse } from "content-disposition";

/** The head of one part of a form. */
export interface PartHead {
  readonly field: string;
  /** As the caller wrote it; undefined if the part is a field and not a file. */
  readonly fileName: string | undefined;
  /** Lowercase, without parameters. */
  readonly mimeType: string;
}

/** Maximum number of headers of one part. No client sends more than four. */
const HEADERS = 32;
const UNENCODED: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);

/**
 * Parses the head of a part in latin1, without the empty line at its end. Undefined for an invalid part of a form (RFC 7578), and
 * for an encoded file, because its bytes would not be those of the file.
 */
export function readPartHead(text: string): PartHead | undefined {
  const headers = readHeaders(text);
  const [disposition, second] = headers?.get("content-disposition") ?? [];
  if (!headers || disposition === undefined || second !== undefined) return undefined;
  if (!UNENCODED.has(headers.get("content-transfer-encoding")?.[0]?.toLowerCase() ?? "binary")) return undefined;
  const { type, parameters } = parse(withoutPairs(decode(disposition)), { multipart: true });
  const { name: field, filename: fileName } = parameters as Readonly<Record<string, string | undefined>>;
  if (type !== "form-data" || field === undefined) return undefined;
  return { field, fileName, mimeType: essenceOf(headers.get("content-type")?.[0]) };
}

/** By lowercase name. Undefined if a line is not a header or there are too many. */
function readHeaders(text: string): ReadonlyMap<string, readonly string[]> | undefined {
  // A line that begins with white space continues the line before (RFC 5322, 2.2.3).
  const lines = text.replaceAll(/\r\n(?=[ \t])/g, "").split("\r\n");
  if (lines.length > HEADERS) return undefined;
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):([^\r\n]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const key = name.toLowerCase();
    headers.set(key, [...(headers.get(key) ?? []), value.trim()]);
  }
  return headers;
}

/**
 * Browsers write a quote in a name as `%22`. Other programs follow RFC 7578 and MIME: `\"`, with `\\` for a backslash. The parser
 * knows only the browsers' way, because browsers do not escape a backslash. A name from a browser never has a backslash before a
 * quote.
 */
function withoutPairs(disposition: string): string {
  return disposition.replaceAll(/\\(["\\])/g, (_pair, escaped: string) => (escaped === '"' ? "%22" : escaped));
}

/** Current forms use UTF-8. Text that is not valid UTF-8 stays latin1. */
function decode(latin1: string): string {
  try {
    return utf8.decode(Buffer.from(latin1, "latin1"));
  } catch {
    return latin1;
  }
}

function essenceOf(contentType: string | undefined): string {
  try {
    return new MIMEType(contentType ?? "").essence;
  } catch {
    return "application/octet-stream";
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
