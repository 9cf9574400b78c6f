import { create } from "content-disposition";

/**
 * A `Content-Disposition` header (RFC 6266) that is valid for every name: with quotes, line ends, control characters, any script,
 * and unpaired surrogates, which become U+FFFD. A name beyond plain ASCII is sent twice. In the copy for old clients, `?`
 * replaces the other characters.
 */
export function contentDisposition(type: "attachment" | "inline", name: string): string {
  return create(name.toWellFormed(), { type });
}
