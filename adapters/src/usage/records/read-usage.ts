import { ports } from "@portico/core";
import type { Days } from "@portico/core/kit";
import type { createPriceOf } from "./prices.ts";
import type { Latency } from "./latency.ts";
import { type Counts, noCounts } from "./tally.ts";

/** Counts as they are stored: those of one process, in one bucket, of one subject. */
export interface StoredUsage {
  readonly kind: "minute" | "hour" | "day";
  /** When the bucket begins, in milliseconds since 1970. */
  readonly at: number;
  /** The process that counted. Only it writes this record. */
  readonly life: string;
  readonly subject: ports.UsageSubject;
  readonly counts: Counts;
  /** Absent, or without a part, if no call told it. */
  readonly latency?: Partial<Latency>;
}

const PAGE = 1000;

/** Stored counts of a time, the oldest first. */
export async function* storedBetween<T extends Pick<StoredUsage, "kind" | "at">>(
  usage: ports.Collection<T>,
  kind: StoredUsage["kind"],
  since: number,
  until: number,
): AsyncIterable<T> {
  let after: string | ports.Place | undefined = { value: since, id: "" };
  while (after !== undefined) {
    const page: ports.Page<T> = await usage.query({
      where: { kind },
      order: { by: "at", direction: "ascending" },
      after,
      limit: PAGE,
    });
    for (const { value } of page.items) {
      if (value.at >= until) return;
      yield value;
    }
    after = page.next;
  }
}

/** The sums of a query. Throws UsageTooWide. */
export async function readUsage(
  usage: ports.Collection<StoredUsage>,
  { since, until, step, by = [], where = {} }: ports.UsageQuery,
  { days, priceOf }: { readonly days: Days; readonly priceOf: ReturnType<typeof createPriceOf> },
): Promise<readonly ports.UsageGroup[]> {
  if (!Number.isFinite(since) || !Number.isFinite(until)) throw new RangeError("A query of usage has a beginning and an end");
  const groups = new Map<string, { at: number; subject: Partial<ports.UsageSubject>; sums: Sums }>();
  const isWanted = wantedOf(where);
  for await (const row of storedBetween(usage, step === "minute" ? "minute" : "hour", since, until)) {
    const { at, subject, counts } = row;
    if (!isWanted(row)) continue;
    const begins = step === undefined ? since : step === "day" ? days.startOf(at) : at;
    const named = Object.fromEntries(by.flatMap((field) => (subject[field] === undefined ? [] : [[field, subject[field]]])));
    const key = JSON.stringify([begins, by.map((field) => named[field])]);
    let group = groups.get(key);
    if (!group) {
      if (groups.size === ports.USAGE_GROUPS) throw new ports.UsageTooWide("The query has too many groups");
      groups.set(key, (group = { at: begins, subject: named, sums: noSums() }));
    }
    addSums(group.sums, { ...counts, ...priceOf(subject, at, counts) });
  }
  return [...groups.values()].sort((one, other) => one.at - other.at);
}

/** Whether the calls of a record have the values of `where`. */
export function wantedOf(where: Partial<ports.UsageSubject> = {}): (row: Pick<StoredUsage, "subject">) => boolean {
  const wanted = Object.entries(where).filter(([, value]) => value !== undefined) as [ports.UsageField, string][];
  return ({ subject }) => wanted.every(([field, value]) => subject[field] === value);
}

type Sums = { -readonly [K in keyof ports.UsageSums]: number };

/** Sums of nothing. */
export function noSums(): Sums {
  return { ...noCounts(), cost: 0, unpriced: 0 };
}

/** Adds sums to others. */
export function addSums(to: Sums, more: ports.UsageSums): void {
  for (const name of Object.keys(to) as (keyof Sums)[]) to[name] += more[name];
}
