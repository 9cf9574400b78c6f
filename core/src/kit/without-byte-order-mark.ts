/** A text without the byte order mark that some editors and programs write at its beginning. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}
