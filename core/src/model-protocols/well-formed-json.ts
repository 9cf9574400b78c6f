/** The text of a JSON document without lone surrogates, which servers refuse. `JSON.stringify` writes each of them as an escape. */
export function wellFormedJson(text: string): string {
  if (!text.includes("\\ud")) return text;
  return text.replace(/\\(?:ud[89a-f][0-9a-f]{2}|[^])/g, (escape) => (escape.length > 2 ? "\uFFFD" : escape));
}
