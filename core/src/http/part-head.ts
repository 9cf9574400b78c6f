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

/**
 * The headers of a part, by lowercase name and in latin1, as its parser gives them. Undefined for what is no part of a form (RFC 7578), and for
 * a file that is encoded: its bytes would not be the file's.
 */
export function readPartHead(headers: Readonly<Record<string, readonly string[] | undefined>>): PartHead | undefined {
  const dispositions = headers["content-disposition"] ?? [];
  if (dispositions.length !== 1) return undefined;
  if (!UNENCODED.has(headers["content-transfer-encoding"]?.[0]?.trim().toLowerCase() ?? "binary")) return undefined;
  const { type, parameters } = parse(decode(dispositions[0]!), { multipart: true });
  const { name: field, filename: fileName } = parameters as Readonly<Record<string, string | undefined>>;
  if (type !== "form-data" || field === undefined) return undefined;
  return { field, fileName, mimeType: essenceOf(headers["content-type"]?.[0]) };
}

const UNENCODED: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);

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
