/** Text of others as one line of a terminal: its control characters would move the cursor, or worse. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, " ");
}

/** JSON for a terminal, and for programs: the control characters that JSON itself leaves as they are stand escaped. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}
