import { ConversionRefused } from "../conversion-refused.ts";

/** Longer than the header of any usual data URL. The limit prevents searching megabytes of data. */
const HEADER_LENGTH = 256;

export interface DataUrl {
  /** Lower case, without parameters. */
  readonly mediaType: string;
  /** The base64 text as a slice of the URL, neither decoded nor copied. */
  readonly data: string;
}

/** Reads a `data:` URL in base64. @throws ConversionRefused for any other URL; the error does not contain the URL. */
export function readDataUrl(url: string, path: string): DataUrl {
  const header = /^data:([^;,\s]+)(?:;[^;,]*)*;base64,/i.exec(url.slice(0, HEADER_LENGTH));
  if (!header?.[1]) throw new ConversionRefused(path, "must be an http, https or base64 data URL");
  return { mediaType: header[1].toLowerCase(), data: url.slice(header[0].length) };
}
