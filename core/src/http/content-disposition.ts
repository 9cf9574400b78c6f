import { create } from "content-disposition";

/**
 * A `Content-Disposition` header (RFC 6266) that is one whatever the name: with quotes, line ends, control characters, any script, and halves of
 * characters, which become U+FFFD. A name that is more than plain ASCII stands there twice, and old clients read question marks for the rest.
 */
export function contentDisposition(type: "attachment" | "inline", name: string): string {
  return create(name.toWellFormed(), { type });
}
