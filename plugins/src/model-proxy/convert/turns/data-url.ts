import { ConversionRefused } from "../conversion-refused.ts";

/** Longer than any header of a data URL in use, and short enough that a body of megabytes is never searched. */
const HEADER_LENGTH = 256;

export interface DataUrl {
  /** Lower case, without parameters. */
  readonly mediaType: string;
  /** Base64, as it came: a slice, never decoded and not copied. */
  readonly data: string;
}

/** Reads a `data:` URL in base64. @throws ConversionRefused for any other URL; the error never repeats it. */
export function readDataUrl(url: string, path: string): DataUrl {
  const header = /^data:([^;,\s]+)(?:;[^;,]*)*;base64,/i.exec(url.slice(0, HEADER_LENGTH));
  if (!header?.[1]) throw new ConversionRefused(path, "must be an http, https or base64 data URL");
  return { mediaType: header[1].toLowerCase(), data: url.slice(header[0].length) };
}
