import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanFileName, cleanMediaType } from "@portico/core";

describe("an attachment's name (2.7)", () => {
  it.each([
    ...["report.pdf", "a", "no extension", ".gitignore", "a..b", "a.tar.gz", "100% & \"more\"; 'x' <y> #1?.txt", "C:file.txt"],
    ...["Größe.txt", "報告書.pdf", "تقرير.pdf", "e\u0301te\u0301.txt", "👩‍👩‍👧.png", "می‌خواهم.txt", "a\u00a0b", "a⁄b"],
  ])("stays as it is where there is nothing to remove: %s", (name) => {
    expect(cleanFileName(name)).toBe(name);
  });

  it.each([
    ["../../etc/passwd", "....etcpasswd"],
    ["/etc/passwd", "etcpasswd"],
    ["C:\\Windows\\win.ini", "C:Windowswin.ini"],
    ["a/b\\c", "abc"],
    ["a\0b.txt", "ab.txt"],
    ["a\r\nContent-Type: text/html\r\n\r\nb", "aContent-Type: texthtmlb"],
    ["\t\x1b[31ma\x7f\x80\x9f", "[31ma"],
    ["a\u2028b\u2029c", "abc"],
    ["photo\u202egpj.exe", "photogpj.exe"],
    ["\u200e\u200f\u061ca\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069b", "ab"],
    ["a\ud800b", "a\ufffdb"],
  ])("loses path separators, control characters and marks of direction: %j", (name, clean) => {
    expect(cleanFileName(name)).toBe(clean);
  });

  it.each([
    "",
    ".",
    "..",
    "...",
    " ",
    " . ",
    "/",
    "../..",
    "\\..\\",
    "\0",
    "\r\n",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\u3000",
    "\u200d.\u200d",
  ])("is `attachment` where nothing is left that can be seen, or dots alone: %j", (name) => {
    expect(cleanFileName(name)).toBe("attachment");
  });

  it("has at most 240 characters, counted when it is clean", () => {
    expect(cleanFileName("a".repeat(240))).toBe("a".repeat(240));
    expect(cleanFileName("a".repeat(241))).toBe("a".repeat(240));
    expect(cleanFileName(`${"/".repeat(300)}${"a".repeat(240)}`)).toBe("a".repeat(240));
    expect(cleanFileName(`${".".repeat(240)}a`)).toBe("attachment");
  });

  it("is never cut within a character", () => {
    expect(cleanFileName(`${"a".repeat(238)}😀b`)).toBe(`${"a".repeat(238)}😀b`);
    expect(cleanFileName(`${"a".repeat(239)}😀b`)).toBe(`${"a".repeat(239)}😀`);
    expect(cleanFileName("😀".repeat(241))).toBe("😀".repeat(240));
  });

  it("any name becomes valid, and a valid name stays unchanged", () => {
    const pieces = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        "/",
        "\\",
        "..",
        "\0",
        "\n",
        "\x85",
        "\u2028",
        "\u202e",
        "\ud83d",
        "\ude00",
        "😀",
        "é",
        "a".repeat(119),
        ".".repeat(120),
      ),
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const clean = cleanFileName(parts.join(""));
        expect(clean.length).toBeGreaterThan(0);
        expect([...clean].length).toBeLessThanOrEqual(240);
        expect(clean.isWellFormed()).toBe(true);
        expect(clean).not.toMatch(/[/\\\0-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/);
        expect(clean).not.toMatch(/^[.\s]*$/);
        expect(cleanFileName(clean)).toBe(clean);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("an attachment's MIME type (2.7)", () => {
  it.each([
    ["text/plain", "text/plain"],
    ["TEXT/Plain", "text/plain"],
    [" text/plain ", "text/plain"],
    ["text/plain; charset=utf-8", "text/plain"],
    ['multipart/mixed;boundary="a/b"', "multipart/mixed"],
    ["image/svg+xml", "image/svg+xml"],
    [
      "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
      "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ],
    [`a/${"b".repeat(126)}`, `a/${"b".repeat(126)}`],
  ])("is what was declared, in small letters and without parameters: %s", (declared, clean) => {
    expect(cleanMediaType(declared)).toBe(clean);
  });

  it.each([
    ...[
      undefined,
      "",
      "text",
      "/",
      "text/",
      "/plain",
      "text/plain/x",
      "text plain",
      "te xt/plain",
      "text/pl ain",
      "*/*",
      "-a/b",
      "a/.b",
    ],
    ...[
      "text/plain\r\nx: y",
      "text/plain\0",
      "text/plän",
      "ｔext/plain",
      "text/\u212a",
      "text/<b>",
      'text/"',
      `a/${"b".repeat(127)}`,
      "text/plain, a/b",
      "; a=b",
    ],
  ])("is application/octet-stream where none was declared: %j", (declared) => {
    expect(cleanMediaType(declared)).toBe("application/octet-stream");
  });

  it("any declared type becomes a valid header value, and a valid value stays unchanged", () => {
    const pieces = fc.oneof(
      fc.string({ unit: "binary", maxLength: 4 }),
      fc.constantFrom("text", "/", "plain", ";", "\r\n", "A", "K", "x".repeat(60)),
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
        const clean = cleanMediaType(parts.join(""));
        expect(clean.length).toBeLessThanOrEqual(128);
        expect(clean).toMatch(/^[!-~]+\/[!-~]+$/);
        expect(clean).toBe(clean.toLowerCase());
        expect(cleanMediaType(clean)).toBe(clean);
      }),
      { numRuns: 2000 },
    );
  });
});
