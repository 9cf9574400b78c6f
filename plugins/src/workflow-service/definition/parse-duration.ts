import * as v from "valibot";
import { LONGEST_DURATION_MS } from "./definition-limits.ts";

const SHORT = /^(\d{1,15})(ms|s|m|h|d)$/;
// Years and months have no length of their own, so there is no place for them here.
const ISO = /^P(?=[\dT])(?:(\d{1,9})W|(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?)$/;
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds of `500ms`, `10s`, `5m`, `2h`, `1d`, or of ISO 8601 without years and months; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  const short = SHORT.exec(text);
  if (short) return Number(short[1]) * UNITS[short[2] as keyof typeof UNITS];
  const iso = ISO.exec(text);
  if (!iso) return undefined;
  const [weeks, days, hours, minutes, seconds] = iso.slice(1).map((part) => Number(part ?? 0)) as [
    ...[number, number, number, number, number],
  ];
  return (weeks * 7 + days) * UNITS.d + hours * UNITS.h + minutes * UNITS.m + Math.round(seconds * UNITS.s);
}

/** Schema of a duration in a definition: a text in, milliseconds out, more than 0 and at most 366 days. `says` describes it to authors. */
export const duration = (says: string) =>
  v.pipe(
    v.string(),
    v.regex(
      new RegExp(`${SHORT.source}|${ISO.source}`),
      "This is no duration: write `500ms`, `10s`, `5m`, `2h`, `1d`, or ISO 8601 without years and months, such as `PT5M`",
    ),
    // Before the transformation: what stands behind it is no part of the JSON Schema.
    v.description(says),
    v.transform((text) => parseDuration(text) ?? 0),
    v.check((ms) => ms > 0 && ms <= LONGEST_DURATION_MS, "A duration is more than 0 and at most 366 days"),
  );
