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

/**
 * Characters that a reader does not see, or that change the order in which a reader sees others: those for the direction of text,
 * invisible ones, separators of lines, and control characters other than a tab and the end of a line.
 */
const HIDDEN = /[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\ufff9-\ufffb]|(?![\t\n\r])\p{Cc}/u;
/**
 * Parts of an emoji: a joiner between two, and the selector that says how one looks. Behind a digit, a selector is part of an emoji
 * only before the frame of a key.
 */
const IN_EMOJI =
  /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})|(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)/u;
const EACH = new RegExp(`(${IN_EMOJI.source})|${HIDDEN.source}`, "gu");

/**
 * A text for a person who decides by it: hidden characters are shown as `[U+202E]`. Show it isolated from the text around it
 * (`<bdi>`, `dir="auto"`), because letters of other directions still order themselves.
 */
export function visibleText(text: string): string {
  return withHidden(text, (character) => `[U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** JSON of a value in which hidden characters are escaped. It is the JSON of the same value. */
export function visibleJson(value: unknown, indent?: number): string {
  return withHidden(JSON.stringify(value, null, indent) ?? "null", (character) =>
    Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

function withHidden(text: string, shown: (character: string) => string): string {
  return text.replaceAll(EACH, (character, isInEmoji: string | undefined) =>
    isInEmoji === undefined ? shown(character) : character,
  );
}

/** A text without the byte order mark that some editors and programs write at its beginning. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** The text without any of these characters at its end: `withoutEnd("a//", "/")` is `"a"`. In linear time, which `/\/+$/` is not. */
export function withoutEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}

/** Whether a text has only white space. */
export function isBlank(text: string): boolean {
  // trim() would copy a long text only to compare it.
  return !/\S/.test(text);
}
