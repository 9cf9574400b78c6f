import type { UsageField, UsageSumsShown, UsageTable } from "@portico/operator/usage/contract";
import { comparedAmount } from "@portico/operator/usage/report";
import type { DayBudgets } from "@portico/plugins/conversations-runs/day-limits";
import { table as toText } from "./terminal.ts";

/** A table of usage for a person, with its sums, the time before, and what the sums leave out. No lines without calls. */
export function tableLines(table: UsageTable, by: UsageField): readonly string[] {
  const { currency, rows, total } = table;
  if (rows.length === 0) return [];
  const amountOf = (sums: UsageSumsShown) => comparedAmount(table, sums);
  const amount = (sums: UsageSumsShown) => (currency === undefined ? String(amountOf(sums)) : amountOf(sums).toFixed(4));
  const cells = (name: string, sums: UsageSumsShown & { before: UsageSumsShown }, share: string) => [
    name,
    ...(currency === undefined ? [] : [amount(sums)]),
    share,
    amount(sums.before),
    changeOf(amountOf(sums), amountOf(sums.before)),
    ...[sums.calls, sums.failed, sums.inputTokens, sums.cachedInputTokens, sums.outputTokens].map(String),
  ];
  const money = currency === undefined ? [] : [`COST (${currency})`];
  const head = [by, ...money, "SHARE", "BEFORE", "CHANGE", "CALLS", "FAILED", "TOKENS IN", "CACHED", "TOKENS OUT"];
  const { unpriced = 0, unknown } = total;
  return [
    `From ${table.since} to ${table.until}, compared with ${table.before.since} to ${table.before.until} (days of ${table.timeZone})`,
    toText(head, [
      ...rows.map(({ value, isRest, share, ...sums }) =>
        cells(isRest ? "(all others)" : (value ?? "(none)"), sums, share === undefined ? "" : `${(share * 100).toFixed(1)} %`),
      ),
      cells("(total)", total, ""),
    ]),
    ...(unpriced > 0 ? [`Calls without a price, whose cost is not part of the sums: ${unpriced}`] : []),
    ...(unknown > 0 ? [`Calls whose usage is not known, and not part of the sums: ${unknown}`] : []),
  ];
}

/** The limits of the day for a person. No lines without limits. */
export function budgetLines({ budgets, currency, endsAt, omitted }: DayBudgets): readonly string[] {
  if (budgets.length === 0) return [];
  const amount = (value: number, isMoney: boolean) => (isMoney ? `${value.toFixed(4)} ${currency ?? ""}`.trim() : String(value));
  return [
    `Limits of today, until ${new Date(endsAt).toISOString()}:`,
    toText(
      ["LIMIT", "OF", "USED", "MOST", "PART"],
      budgets.map(({ scope, id, limit, used, most }) => {
        const isMoney = limit === "moneyPerDay";
        const part = most === 0 ? 1 : used / most;
        return [
          limit,
          `${scope} ${id ?? ""}`.trim(),
          amount(used, isMoney),
          amount(most, isMoney),
          `${(part * 100).toFixed(0)} %`,
        ];
      }),
    ),
    ...(omitted > 0 ? [`${omitted} more limits are not shown.`] : []),
  ];
}

function changeOf(amount: number, before: number): string {
  if (before === 0) return amount === 0 ? "" : "new";
  const change = Math.round((amount / before - 1) * 100);
  return `${change > 0 ? "+" : ""}${change} %`;
}
