import type { ports } from "@portico/core";

/**
 * The end of the ids of a turn that begins `at` (milliseconds since 1970): `turn_`, `run_` and `ses_` stand before it. What is made at about
 * the same time stands together in the stores, which have less to write then.
 */
export function newEnd(ids: ports.Ids, at: number): string {
  return ids.id(at.toString(36).padStart(9, "0"));
}
