import { MIMEType } from "node:util";
import { parse } from "content-disposition";

/** What the head of one part of a form says. */
export interface PartHead {
  readonly field: string;
  /** As the caller wrote it; undefined where the part is a field and no file. */
  readonly fileName: string | undefined;
  /** Lowercase and without parameters. */
  readonly mimeType: string;
}

/** Headers of one part; no client sends more than four. */
const HEADERS = 32;
const UNENCODED: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);

/**
 * The head of a part in latin1, without the empty line at its end. Undefined for what is no part of a form (RFC 7578), and for a file that is
 * encoded: its bytes would not be the file's.
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

/** By lowercase name; undefined where a line is no header or there are too many. */
function readHeaders(text: string): ReadonlyMap<string, readonly string[]> | undefined {
  // A line that begins with white space goes on with the one before (RFC 5322, 2.2.3).
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
 * Browsers write a quote in a name as `%22`, and other programs as RFC 7578 has it from MIME, as `\"`, with `\\` for a backslash. The parser knows
 * the first way alone, since browsers write a backslash as it is: in theirs none stands before a quote.
 */
function withoutPairs(disposition: string): string {
  return disposition.replaceAll(/\\(["\\])/g, (_pair, escaped: string) => (escaped === '"' ? "%22" : escaped));
}

/** Forms are in UTF-8 today; what cannot be that is what it was before. */
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
