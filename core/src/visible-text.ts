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
