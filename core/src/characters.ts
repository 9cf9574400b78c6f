import * as v from "valibot";

/** A text has at most this many characters: Unicode code points, as `maxLength` of JSON Schema counts them. An emoji of two UTF-16 units is one. */
export function maxCharacters<const M extends number>(
  most: M,
  message?: string,
): v.MaxLengthAction<string, M, string | undefined> {
  // Under this name, documents that are derived from schemas contain the limit.
  const named = {
    ...v.maxCodePoints<string, M, string | undefined>(most, message),
    type: "max_length",
    reference: maxCharacters,
  };
  return named as unknown as v.MaxLengthAction<string, M, string | undefined>;
}

/** Whether a text has at most this many characters. */
export function hasAtMost(most: number, text: string): boolean {
  // A character has at most two UTF-16 units.
  return text.length <= most || (text.length <= 2 * most && v._getCodePointCount(text) <= most);
}

/** The text, or its first characters if it has more. */
export function firstCharacters(most: number, text: string): string {
  return hasAtMost(most, text) ? text : [...text.slice(0, 2 * most)].slice(0, most).join("");
}
