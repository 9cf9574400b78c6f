import { visibleJson, visibleText } from "@portico/core/contract";
import { describe, expect, it } from "vitest";

describe("text for a person who decides", () => {
  it.each([
    ["the direction of text", "pay \u202egro.live\u202c", "pay [U+202E]gro.live[U+202C]"],
    ["isolates and marks", "\u2066a\u2069\u200e\u200f\u061c", "[U+2066]a[U+2069][U+200E][U+200F][U+061C]"],
    ["text without width", "ad\u200bmin\ufeff\u2060\u00ad", "ad[U+200B]min[U+FEFF][U+2060][U+00AD]"],
    ["fillers", "a\u3164\u115f\uffa0\u034f", "a[U+3164][U+115F][U+FFA0][U+034F]"],
    ["tags, also behind a flag", "🏴\u{e0069}\u{e007f}", "🏴[U+E0069][U+E007F]"],
    ["separators of lines", "a\u2028b\u2029c", "a[U+2028]b[U+2029]c"],
    ["control characters", "a\u001b[2J\u009b\u0000", "a[U+001B][2J[U+009B][U+0000]"],
    ["selectors that carry data", "A\ufe00\u{e0101} 100\ufe0f ❤\ufe0f\ufe0f", "A[U+FE00][U+E0101] 100[U+FE0F] ❤\ufe0f[U+FE0F]"],
    ["joiners between letters", "a\u200db\u200cc", "a[U+200D]b[U+200C]c"],
  ])("shows %s", (_what, text, shown) => {
    expect(visibleText(text)).toBe(shown);
    const json = visibleJson({ [text]: [text] }, 2);
    expect(JSON.parse(json)).toEqual({ [text]: [text] });
    expect(visibleText(json)).toBe(json);
  });

  it.each(["❤️ 👩‍👩‍👧 👍🏽 1️⃣ 👨🏽‍💻 🏳️‍🌈 ©️", "שלום עולם", "مرحبا", "日本語", "a\tb\r\nc é e\u0301"])("keeps %s as it is", (text) =>
    expect(visibleText(text)).toBe(text),
  );
});
