import { parseDuration } from "@portico/plugins/workflow-service/parse-duration";
import * as v from "valibot";

const FOR_EVER = "forever";
const LEAST_MS = 60 * 60_000;
/** A hundred years: what is meant to be longer is meant to be for ever. */
const MOST_MS = 36_525 * 24 * 60 * 60_000;

/** How long something is kept: a duration, as definitions of workflows write it, or `forever`. `keepingMs` reads it. */
export function keeping() {
  return v.pipe(v.string(), v.check(isKeeping, 'a duration of at least an hour, such as 12h or 90d, or "forever"'));
}

/** Milliseconds; undefined for ever. */
export function keepingMs(written: string): number | undefined {
  return written === FOR_EVER ? undefined : parseDuration(written);
}

function isKeeping(written: string): boolean {
  if (written === FOR_EVER) return true;
  const ms = parseDuration(written);
  return ms !== undefined && ms >= LEAST_MS && ms <= MOST_MS;
}
