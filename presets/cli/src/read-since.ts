import { isExistingDay, parseDuration } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** The time of an option, by default `--since`, in milliseconds since 1970. Throws CommandFailed (64). */
export function readSince(written: string, option = "since"): number {
  const duration = parseDuration(written);
  if (duration !== undefined) return Date.now() - duration;
  const time = /^\d{4}-\d\d-\d\d(T|$)/.test(written) && isExistingDay(written) ? Date.parse(written) : Number.NaN;
  if (Number.isNaN(time))
    throw new CommandFailed(`Option --${option} must be a duration, such as 12h or 30d, or a time in ISO 8601`, EXIT.usage);
  return time;
}
