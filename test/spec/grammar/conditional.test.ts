import { allowsRange, checkConditions, checkReplacement, httpDate, type Validators } from "@portico/core";
import { describe, expect, it } from "vitest";

const NOW = Date.UTC(1994, 10, 6, 8, 49, 37, 500);
const DATE = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER = "Sun, 06 Nov 1994 08:49:38 GMT";
const there: Validators = { etag: '"a"', lastModified: NOW };

it("a date is written as HTTP does, in whole seconds", () => {
  expect(httpDate(NOW)).toBe(DATE);
});

describe("the conditions of a GET", () => {
  it.each([
    ["none", {}, "proceed"],
    ["If-None-Match with its tag", { "if-none-match": '"a"' }, "not_modified"],
    ["If-None-Match with its tag among others", { "if-none-match": '"b", "a"' }, "not_modified"],
    ["If-None-Match with its tag among others, in any spacing", { "if-none-match": ' ,"b" ,\t"a",' }, "not_modified"],
    ["If-None-Match with its tag as a weak one", { "if-none-match": 'W/"a"' }, "not_modified"],
    ["If-None-Match with any", { "if-none-match": "*" }, "not_modified"],
    ["If-None-Match with another", { "if-none-match": '"b"' }, "proceed"],
    ["If-None-Match with a tag that holds its tag", { "if-none-match": '"b,a"' }, "proceed"],
    ["If-None-Match without quotes", { "if-none-match": "a" }, "proceed"],
    ["If-None-Match that is no list", { "if-none-match": '"b" "a"' }, "proceed"],
    ["If-None-Match that is empty", { "if-none-match": "" }, "proceed"],
    ["If-Modified-Since with its date", { "if-modified-since": DATE }, "not_modified"],
    ["If-Modified-Since with a later date", { "if-modified-since": AFTER }, "not_modified"],
    ["If-Modified-Since with an earlier date", { "if-modified-since": BEFORE }, "proceed"],
    ["If-Modified-Since as it was written once", { "if-modified-since": "Sunday, 06-Nov-94 08:49:37 GMT" }, "not_modified"],
    ["If-Modified-Since as it was written before that", { "if-modified-since": "Sun Nov  6 08:49:37 1994" }, "not_modified"],
    ["an earlier If-Modified-Since in an old way", { "if-modified-since": "Sun Nov  6 08:49:36 1994" }, "proceed"],
    ["If-Modified-Since that is no date", { "if-modified-since": "yesterday" }, "proceed"],
    ["If-Modified-Since in another zone", { "if-modified-since": "Sun, 06 Nov 2094 08:49:37 CET" }, "proceed"],
    ["If-Modified-Since of a day that is none", { "if-modified-since": "Sun, 99 Nov 2094 08:49:37 GMT" }, "proceed"],
    ["If-None-Match with another, whatever the date", { "if-none-match": '"b"', "if-modified-since": AFTER }, "proceed"],
    ["If-None-Match with its tag, whatever the date", { "if-none-match": '"a"', "if-modified-since": BEFORE }, "not_modified"],
    ["If-Match with its tag", { "if-match": '"b", "a"' }, "proceed"],
    ["If-Match with any", { "if-match": "*" }, "proceed"],
    ["If-Match with another", { "if-match": '"b"' }, "precondition_failed"],
    ["If-Match with its tag as a weak one", { "if-match": 'W/"a"' }, "precondition_failed"],
    ["If-Match that is no list", { "if-match": "a" }, "precondition_failed"],
    ["If-Match with its tag, whatever the date", { "if-match": '"a"', "if-unmodified-since": BEFORE }, "proceed"],
    ["If-Match with its tag, and If-None-Match, too", { "if-match": '"a"', "if-none-match": '"a"' }, "not_modified"],
    ["If-Match with another before If-None-Match", { "if-match": '"b"', "if-none-match": '"a"' }, "precondition_failed"],
    ["If-Unmodified-Since with its date", { "if-unmodified-since": DATE }, "proceed"],
    ["If-Unmodified-Since with a later date", { "if-unmodified-since": AFTER }, "proceed"],
    ["If-Unmodified-Since with an earlier date", { "if-unmodified-since": BEFORE }, "precondition_failed"],
    ["If-Unmodified-Since that is no date", { "if-unmodified-since": "tomorrow" }, "proceed"],
  ] as const)("%s", (_what, headers, outcome) => {
    expect(checkConditions(asking("GET", headers), there)).toBe(outcome);
    expect(checkConditions(asking("HEAD", headers), there)).toBe(outcome);
  });

  it.each([
    ["If-None-Match", { "if-none-match": '"a"' }, "proceed"],
    ["If-None-Match with any", { "if-none-match": "*" }, "not_modified"],
    ["If-Match", { "if-match": '"a"' }, "precondition_failed"],
    ["If-Modified-Since", { "if-modified-since": AFTER }, "proceed"],
    ["If-Unmodified-Since", { "if-unmodified-since": BEFORE }, "proceed"],
  ] as const)("for something that has neither tag nor date: %s", (_what, headers, outcome) => {
    expect(checkConditions(asking("GET", headers), {})).toBe(outcome);
  });

  it("compare a weak tag as one: never for If-Match, always for If-None-Match", () => {
    const weak = { etag: 'W/"a"' };
    for (const tag of ['"a"', 'W/"a"']) {
      expect(checkConditions(asking("GET", { "if-match": tag }), weak)).toBe("precondition_failed");
      expect(checkConditions(asking("GET", { "if-none-match": tag }), weak)).toBe("not_modified");
    }
  });
});

describe("the conditions of a PUT", () => {
  it.each([
    ["If-None-Match with its tag", { "if-none-match": '"a"' }, "precondition_failed"],
    ["If-None-Match with any", { "if-none-match": "*" }, "precondition_failed"],
    ["If-None-Match with another", { "if-none-match": '"b"' }, "proceed"],
    ["If-Modified-Since, which is not for it", { "if-modified-since": AFTER }, "proceed"],
    ["If-Match with another", { "if-match": '"b"' }, "precondition_failed"],
  ] as const)("%s", (_what, headers, outcome) => {
    expect(checkConditions(asking("PUT", headers), there)).toBe(outcome);
  });
});

describe("If-Range: the Range applies", () => {
  it.each([
    ["where it is not there", {}, true],
    ["with its tag", { "if-range": '"a"' }, true],
    ["with another tag", { "if-range": '"b"' }, false],
    ["with its tag as a weak one", { "if-range": 'W/"a"' }, false],
    ["with its date", { "if-range": DATE }, true],
    ["with its date in an old way", { "if-range": "Sunday, 06-Nov-94 08:49:37 GMT" }, true],
    ["with a later date", { "if-range": AFTER }, false],
    ["with an earlier date", { "if-range": BEFORE }, false],
    ["with several tags", { "if-range": '"a", "b"' }, false],
    ["with any", { "if-range": "*" }, false],
    ["with nothing", { "if-range": "" }, false],
    ["with what is neither", { "if-range": "a" }, false],
  ] as const)("%s: %j %s", (_what, headers, isAllowed) => {
    expect(allowsRange(asking("GET", headers), there)).toBe(isAllowed);
  });

  it("never by a weak tag, and never by what is not known", () => {
    expect(allowsRange(asking("GET", { "if-range": 'W/"a"' }), { etag: 'W/"a"' })).toBe(false);
    expect(allowsRange(asking("GET", { "if-range": '"a"' }), {})).toBe(false);
    expect(allowsRange(asking("GET", { "if-range": DATE }), {})).toBe(false);
  });
});

describe("a write must name the state that it replaces", () => {
  it.each([
    ["a resource, without a condition", {}, '"a"', "precondition_required"],
    ["a resource, with If-None-Match and a tag alone", { "if-none-match": '"b"' }, '"a"', "precondition_required"],
    ["a resource, with its tag", { "if-match": '"a"' }, '"a"', "proceed"],
    ["a resource, with any tag", { "if-match": "*" }, '"a"', "proceed"],
    ["a resource, with another tag", { "if-match": '"b"' }, '"a"', "precondition_failed"],
    ["a resource, as a new one", { "if-none-match": "*" }, '"a"', "precondition_failed"],
    ["a resource, with its tag and as a new one", { "if-match": '"a"', "if-none-match": "*" }, '"a"', "precondition_failed"],
    ["nothing, without a condition", {}, undefined, "precondition_required"],
    ["nothing, as a new one", { "if-none-match": " * " }, undefined, "proceed"],
    ["nothing, with any tag", { "if-match": "*" }, undefined, "precondition_failed"],
    ["nothing, with a tag and as a new one", { "if-match": '"a"', "if-none-match": "*" }, undefined, "precondition_failed"],
  ] as const)("%s", (_what, headers, etag, outcome) => {
    expect(checkReplacement(asking("PUT", headers), etag)).toBe(outcome);
  });
});

function asking(method: string, headers: Readonly<Record<string, string>>) {
  return { method, header: (name: string) => headers[name] };
}
