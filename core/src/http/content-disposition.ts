import { create, parse } from "content-disposition";

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
