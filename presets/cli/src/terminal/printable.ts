import { visibleJson, visibleText } from "@portico/core/contract";

/**
 * Untrusted text as one line for a terminal. Control characters become blanks: they could move the cursor, or do worse. Hidden
 * characters are shown (`visibleText`).
 */
export function printable(text: string): string {
  return visibleText(text.replaceAll(/\p{Cc}/gu, " "));
}

/** JSON for a terminal, and for programs: hidden characters are escaped (`visibleJson`). */
export const printableJson = visibleJson;
