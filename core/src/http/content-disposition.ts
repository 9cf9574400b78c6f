import { create } from "content-disposition";

/** The header `Content-Disposition` for a file of this name, whatever is in it (RFC 6266). */
export function contentDisposition(type: "attachment" | "inline", name: string): string {
  // Control characters are no part of any name that somebody should save.
  return create(name.toWellFormed().replaceAll(/\p{Cc}/gu, ""), { type });
}
