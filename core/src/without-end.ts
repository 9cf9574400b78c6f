/** The text without any of these characters at its end: `withoutEnd("a//", "/")` is `"a"`. In linear time, which `/\/+$/` is not. */
export function withoutEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}
