import type { Days } from "@portico/core/kit";
import type { UsageRange } from "./contract.ts";

/** A time, in milliseconds since 1970, without its end. */
export interface Span {
  readonly since: number;
  readonly until: number;
}

/** A time and the time before it, which is what its figures are compared with. */
export interface ComparedSpan extends Span {
  /** Of a time that has not ended, only the part that has passed by now. */
  readonly before: Span;
}

/** Times that a query names: a word, or the first and last day (`2030-12-31`) or time (ISO 8601) of an own range. */
export interface AskedRange {
  readonly range?: UsageRange | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const DATE_CHARACTERS = 10;

/**
 * The time that a query names, by default the last 24 hours. Undefined if it does not end after its beginning, or if it is named twice. With
 * `isWholeHours`, an own time and the time before it begin with the hour that contains their beginning. Nothing was counted before 1970.
 */
export function spanOf(
  { range, from, to, isWholeHours = false }: AskedRange & { readonly isWholeHours?: boolean },
  now: number,
  days: Days,
): ComparedSpan | undefined {
  if (range !== undefined) return from === undefined && to === undefined ? compared(spansOf(range, now, days), now) : undefined;
  if (from === undefined && to === undefined) return compared(spansOf("day", now, days), now);
  const until = to === undefined ? now + 1 : timeOf(to, days, days.endOf);
  const begin = from === undefined ? until - DAY_MS : timeOf(from, days, days.startOf);
  const since = isWholeHours && from?.length !== DATE_CHARACTERS ? hourOf(begin) : begin;
  if (since >= until) return undefined;
  const isDays = from?.length === DATE_CHARACTERS && (to === undefined || to.length === DATE_CHARACTERS);
  const asLong = since - (until - since);
  const before = isDays ? daysBefore(since, until, days) : isWholeHours ? hourOf(asLong) : asLong;
  const span = compared([since, until, Math.max(before, 0)], now);
  // An own end may be in the future.
  return { ...span, until };
}

/** The beginning, the end and the beginning of the time before, which ends where this one begins. */
type Spans = readonly [since: number, until: number, before: number];

function spansOf(range: UsageRange, now: number, days: Days): Spans {
  const today = days.dateOf(now);
  const day = (date: string) => days.startOfDate(date);
  switch (range) {
    case "hour":
      return rolling(now, 60 * MINUTE_MS, MINUTE_MS);
    case "day":
      return rolling(now, 24 * HOUR_MS, HOUR_MS);
    case "today":
      return [day(today), day(moved(today, 1)), day(moved(today, -1))];
    case "yesterday":
      return [day(moved(today, -1)), day(today), day(moved(today, -2))];
    case "last-7-days":
      return [day(moved(today, -6)), day(moved(today, 1)), day(moved(today, -13))];
    case "last-30-days":
      return [day(moved(today, -29)), day(moved(today, 1)), day(moved(today, -59))];
    case "last-week": {
      const monday = moved(today, -((new Date(today).getUTCDay() + 6) % 7));
      return [day(moved(monday, -7)), day(monday), day(moved(monday, -14))];
    }
    case "this-month":
      return [day(monthOf(today, 0)), day(monthOf(today, 1)), day(monthOf(today, -1))];
    case "last-month":
      return [day(monthOf(today, -1)), day(monthOf(today, 0)), day(monthOf(today, -2))];
  }
}

/** Whole steps, the last of which is the present one. */
function rolling(now: number, length: number, step: number): Spans {
  const until = now - (now % step) + step;
  return [until - length, until, until - 2 * length];
}

function compared([since, end, begin]: Spans, now: number): ComparedSpan {
  const until = Math.max(since, Math.min(end, now + 1));
  const beforeUntil = until < end ? Math.min(since, begin + (until - since)) : since;
  return { since, until, before: { since: begin, until: beforeUntil } };
}

/** As many days before. */
function daysBefore(since: number, until: number, days: Days): number {
  const count = Math.round((until - since) / DAY_MS);
  // Dates of years before 1 and after 9999 have no four digits.
  if (since - count * DAY_MS < DAY_MS) return 0;
  return days.startOfDate(moved(days.dateOf(since), -count));
}

function timeOf(written: string, days: Days, edge: (ms: number) => number): number {
  if (written < "1970-01-02") return 0;
  return written.length === DATE_CHARACTERS ? edge(days.startOfDate(written)) : Date.parse(written);
}

function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS) * HOUR_MS;
}

/** A date some days later. */
function moved(date: string, by: number): string {
  return new Date(Date.parse(date) + by * DAY_MS).toISOString().slice(0, DATE_CHARACTERS);
}

/** The first date of a month, some months later. */
function monthOf(date: string, by: number): string {
  const at = new Date(date);
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + by, 1)).toISOString().slice(0, DATE_CHARACTERS);
}
