import { toCsv } from "@portico/operator/usage/csv";
import { expect, it } from "vitest";

const sums = {
  calls: 1,
  refused: 0,
  failed: 0,
  unknown: 0,
  inputTokens: 2,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 3,
};
const table = (values: readonly string[], since = "2026-11-22T23:00:00.000Z", until = "2026-11-29T23:00:00.000Z") => ({
  ...{ timeZone: "Europe/Berlin", since, until, before: { since, until }, shareOf: "tokens" as const },
  rows: values.map((value) => ({ value, isRest: false, ...sums, share: 0.5, before: sums })),
  total: { ...sums, before: sums },
});
const firstCells = (values: readonly string[]) =>
  toCsv(table(values), "userId")
    .text.split("\r\n")
    .slice(1, -2)
    .map((line) => line.replace(/,1,0,0,2,.*$/, ""));

it.each([
  ["=1+1", "'=1+1"],
  ["+1", "'+1"],
  ["-1", "'-1"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["\t=1", "'\t=1"],
  ["plain", "plain"],
  ["a=1", "a=1"],
  ['says "hi", often', '"says ""hi"", often"'],
  ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`],
])("a value of a CSV is a text for spreadsheets and quoted as RFC 4180 says: %j", (value, cell) => {
  expect(firstCells([value])).toEqual([cell]);
});

it("has lines that end with CRLF, the sums last, and no columns of money without prices", () => {
  const { text } = toCsv(table(["ada"]), "userId");
  const head = "calls,failed,unknown,input_tokens,cached_input_tokens,output_tokens";
  const before = head.replaceAll(/(\w+)/g, "before_$1");
  expect(text).toBe(
    `userId,${head},share_of_tokens,${before}\r\nada,1,0,0,2,0,3,0.5,1,0,0,2,0,3\r\n(total),1,0,0,2,0,3,,1,0,0,2,0,3\r\n`,
  );
});

it("is named by its field and its days in the time zone", () => {
  expect(toCsv(table([]), "agentId").name).toBe("usage-by-agentId-2026-11-23-to-2026-11-29.csv");
  expect(toCsv(table([], "2026-11-28T23:00:00.000Z", "2026-11-29T10:00:00.001Z"), "model").name).toBe(
    "usage-by-model-2026-11-29.csv",
  );
});
