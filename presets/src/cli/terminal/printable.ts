/** Untrusted text as one line for a terminal. Control characters are escaped: they could move the cursor, or do worse. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, " ");
}

/** JSON for a terminal, and for programs. Also escapes the control characters that JSON itself does not escape. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}
