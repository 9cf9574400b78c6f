import type { ports } from "@portico/core";

/**
 * The suffix that the ids of a turn share: `turn_`, `run_` and `ses_` stand before it. It begins with the time, `at` (milliseconds since 1970): turns
 * of about the same time lie together in the stores, which write less then.
 */
export function newIdSuffix(ids: ports.Ids, at: number): string {
  return ids.id(timeOf(at));
}

/** The first suffix of this time: every suffix of an earlier time is smaller. */
export function firstIdSuffix(at: number): string {
  return timeOf(Math.max(at, 0));
}

function timeOf(at: number): string {
  return Math.floor(at).toString(36).padStart(9, "0");
}
