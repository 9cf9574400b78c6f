import type { ports } from "@portico/core";
import type { UsageSumsShown, UsageTable } from "./contract.ts";
import type { ComparedSpan, Span } from "./range.ts";

/** Which calls to show, and how many rows. */
export interface UsageTableQuery {
  readonly span: ComparedSpan;
  readonly by: ports.UsageField;
  readonly where?: Partial<ports.UsageSubject> | undefined;
  /** The most rows of values. All others share one. */
  readonly top: number;
  /** Counts are those of whole hours, or of whole minutes, which reach back 25 hours. */
  readonly unit: "hour" | "minute";
}

interface Compared {
  readonly sums: ports.UsageSums;
  readonly before: ports.UsageSums;
}

/** What models were used for, by the values of a field, as `GET /api/usage/table` answers. Throws `UsageTooWide`. */
export async function readTable(
  usage: Pick<ports.Usage, "read" | "timeZone">,
  { span, by, where, top, unit }: UsageTableQuery,
): Promise<UsageTable> {
  const step = unit === "minute" ? unit : undefined;
  const read = ({ since, until }: Span) => usage.read({ since, until, by: [by], where, step });
  const [now, before] = await Promise.all([read(span), read(span.before)]);
  const all = new Map<string | undefined, Compared>();
  const of = (value: string | undefined) => all.get(value) ?? { sums: NOTHING, before: NOTHING };
  for (const { subject, sums } of now.groups) {
    const known = of(subject[by]);
    all.set(subject[by], { ...known, sums: sumOf([known.sums, sums]) });
  }
  // Also what was used only before, so that the sums are those of all rows.
  for (const { subject, sums } of before.groups) {
    const known = of(subject[by]);
    all.set(subject[by], { ...known, before: sumOf([known.before, sums]) });
  }
  const total = totalOf([...all.values()]);
  const shareOf = total.sums.cost > 0 ? "cost" : tokensOf(total.sums) > 0 ? "tokens" : "calls";
  const amountOf = (sums: ports.UsageSums) => (shareOf === "tokens" ? tokensOf(sums) : sums[shareOf]);
  const whole = amountOf(total.sums);
  const { currency } = now;
  const rowOf = ({ sums, before: earlier }: Compared) => ({
    ...shown(sums, currency),
    ...(whole > 0 && { share: amountOf(sums) / whole }),
    before: shown(earlier, currency),
  });
  const sorted = [...all].sort(([, one], [, other]) => compare(one.sums, other.sums) || compare(one.before, other.before));
  const rest = sorted.slice(top).map(([, found]) => found);
  return {
    timeZone: usage.timeZone,
    ...textOf(span),
    before: textOf(span.before),
    ...(currency !== undefined && { currency }),
    shareOf,
    rows: [
      ...sorted
        .slice(0, top)
        .map(([value, found]) => ({ ...(value !== undefined && { value }), isRest: false, ...rowOf(found) })),
      ...(rest.length > 0 ? [{ isRest: true, ...rowOf(totalOf(rest)) }] : []),
    ],
    total: { ...shown(total.sums, currency), before: shown(total.before, currency) },
  };
}

/** What a table compares with the time before: the cost if the instance knows prices, and otherwise what the shares are of. */
export function comparedAmount({ currency, shareOf }: Pick<UsageTable, "currency" | "shareOf">, sums: UsageSumsShown): number {
  if (currency !== undefined) return sums.cost ?? 0;
  return shareOf === "calls" ? sums.calls : tokensOf(sums);
}

const NOTHING: ports.UsageSums = {
  ...{ calls: 0, refused: 0, failed: 0, unknown: 0, cost: 0, unpriced: 0 },
  ...{ inputTokens: 0, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0 },
};

function totalOf(all: readonly Compared[]): Compared {
  return { sums: sumOf(all.map(({ sums }) => sums)), before: sumOf(all.map(({ before }) => before)) };
}

function sumOf(all: readonly ports.UsageSums[]): ports.UsageSums {
  const names = Object.keys(NOTHING) as (keyof ports.UsageSums)[];
  const sums = names.map((name) => [name, all.reduce((sum, each) => sum + each[name], 0)]);
  return Object.fromEntries(sums) as unknown as ports.UsageSums;
}

function tokensOf({ inputTokens, outputTokens }: Pick<ports.UsageSums, "inputTokens" | "outputTokens">): number {
  return inputTokens + outputTokens;
}

/** The more expensive first, then those with more tokens, then those with more calls. */
function compare(one: ports.UsageSums, other: ports.UsageSums): number {
  return other.cost - one.cost || tokensOf(other) - tokensOf(one) || other.calls - one.calls;
}

function shown({ cost, unpriced, ...sums }: ports.UsageSums, currency: string | undefined): UsageSumsShown {
  return { ...sums, ...(currency !== undefined && { cost, unpriced }) };
}

function textOf({ since, until }: Span): { since: string; until: string } {
  return { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
}
