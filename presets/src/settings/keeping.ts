import { parseDuration } from "@portico/core";
import * as v from "valibot";

const FOR_EVER = "forever";
const LEAST_MS = 60 * 60_000;
/** A hundred years. For longer times, use `forever`. */
const MOST_MS = 36_525 * 24 * 60 * 60_000;

/** How long something is kept: a duration in the format of workflow definitions, or `forever`. `keepingMs` converts it. */
export function keeping() {
  return v.pipe(v.string(), v.check(isKeeping, 'a duration of at least an hour, such as 12h or 90d, or "forever"'));
}

/** Milliseconds. Undefined for `forever`. */
export function keepingMs(written: string): number | undefined {
  return written === FOR_EVER ? undefined : parseDuration(written);
}

function isKeeping(written: string): boolean {
  if (written === FOR_EVER) return true;
  const ms = parseDuration(written);
  return ms !== undefined && ms >= LEAST_MS && ms <= MOST_MS;
}
