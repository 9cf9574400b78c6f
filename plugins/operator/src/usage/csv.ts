import type { UsageField, UsageSumsShown, UsageTable } from "./contract.ts";

/** Spreadsheets calculate a cell that begins with one of these. An apostrophe makes it a text. */
const FORMULA = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;
const LINE_END = "\r\n";

/** A table of usage as a file for spreadsheets (RFC 4180). It has a name that tells the field and the days. */
export function toCsv(table: UsageTable, by: UsageField): { readonly name: string; readonly text: string } {
  const { currency, rows, total, timeZone } = table;
  const money = currency === undefined ? [] : [`cost_${currency}`, "calls_without_price"];
  const own = ["calls", "failed", "unknown", "input_tokens", "cached_input_tokens", "output_tokens", ...money];
  const head = [by, ...own, `share_of_${table.shareOf}`, ...own.map((name) => `before_${name}`)];
  const lineOf = (name: string, sums: UsageSumsShown & { readonly before: UsageSumsShown }, share: number | undefined) => [
    ...[name, ...numbersOf(sums, currency), share ?? ""],
    ...numbersOf(sums.before, currency),
  ];
  const lines = [
    head,
    ...rows.map(({ value, isRest, share, ...sums }) => lineOf(isRest ? "(all others)" : (value ?? "(none)"), sums, share)),
    lineOf("(total)", total, undefined),
  ];
  const [first, last] = [dayOf(Date.parse(table.since), timeZone), dayOf(Date.parse(table.until) - 1, timeZone)];
  return {
    name: `usage-by-${by}-${first === last ? first : `${first}-to-${last}`}.csv`,
    text: lines.map((cells) => cells.map(toCell).join(",") + LINE_END).join(""),
  };
}

function numbersOf(sums: UsageSumsShown, currency: string | undefined): readonly number[] {
  const { calls, failed, unknown, inputTokens, cachedInputTokens, outputTokens, cost = 0, unpriced = 0 } = sums;
  const counts = [calls, failed, unknown, inputTokens, cachedInputTokens, outputTokens];
  return currency === undefined ? counts : [...counts, cost, unpriced];
}

function toCell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The date in a time zone: `2030-12-31`. */
function dayOf(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat("sv-SE", { timeZone }).format(at);
}
