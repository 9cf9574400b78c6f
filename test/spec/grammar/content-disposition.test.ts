import { contentDisposition } from "@portico/core";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("a Content-Disposition", () => {
  it.each([
    ["a plain name", "a.txt", "attachment; filename=a.txt"],
    ["spaces", "a b.txt", 'attachment; filename="a b.txt"'],
    ["quotes", 'a"b".txt', String.raw`attachment; filename="a\"b\".txt"`],
    ["a backslash", "a\\b", String.raw`attachment; filename="a\\b"`],
    ["parameters of its own", 'a"; filename=b', String.raw`attachment; filename="a\"; filename=b"`],
    ["line ends", "a\r\nSet-Cookie: b", `attachment; filename="a??Set-Cookie: b"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20b`],
    ["NUL", "a\0b", `attachment; filename="a?b"; filename*=UTF-8''a%00b`],
    ["other letters", "Grüße.txt", `attachment; filename="Gr??e.txt"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.txt`],
    ["what is beyond latin1", "€ 5", `attachment; filename="? 5"; filename*=UTF-8''%E2%82%AC%205`],
    ["half a character", "a\ud83d.txt", `attachment; filename="a?.txt"; filename*=UTF-8''a%EF%BF%BD.txt`],
    ["what looks encoded", "a%20b", `attachment; filename=a%20b; filename*=UTF-8''a%2520b`],
    ["no name", "", 'attachment; filename=""'],
  ])("with %s", (_what, name, header) => {
    expect(contentDisposition("attachment", name)).toBe(header);
  });

  it("may be shown in its page", () => {
    expect(contentDisposition("inline", "a.png")).toBe("inline; filename=a.png");
  });

  it("has names of 240 characters whole", () => {
    for (const letter of ["x", "ü", "日"]) {
      const name = letter.repeat(240);
      expect(nameIn(contentDisposition("attachment", name))).toBe(name);
    }
  });

  it("is a valid header with the file's name, for any name", () => {
    const name = fc.string({ unit: "binary", maxLength: 240 });
    const half = fc.array(fc.constantFrom("\ud800", "\udfff", '"', "\\", "\r\n", "\0", ";", "%41", "ü", "日", "x"), {
      maxLength: 20,
    });
    fc.assert(
      fc.property(
        fc.oneof(
          name,
          half.map((parts) => parts.join("")),
        ),
        (each) => {
          const header = contentDisposition("attachment", each);
          expect(header).toMatch(/^attachment; filename=[\x20-\x7e]*$/);
          expect(() => new Headers({ "content-disposition": header })).not.toThrow();
          expect(nameIn(header)).toBe(each.toWellFormed());
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

/** The name as a client of today reads it. */
function nameIn(header: string): string {
  const [, extended] = /; filename\*=UTF-8''([^;]*)$/.exec(header) ?? [];
  if (extended !== undefined) return decodeURIComponent(extended);
  const [, quoted, token] = /^\w+; filename=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))$/.exec(header)!;
  return token ?? quoted!.replaceAll(/\\(.)/g, "$1");
}
