import { jsonObject } from "@portico/core/contract";
import type { ports } from "@portico/core";
import { Cron } from "croner";
import * as v from "valibot";
import { checkJsonNow } from "@portico/core/kit";
import { toShown } from "./schema-check.ts";
import {
  DEFINITION_SCHEDULES,
  duration,
  LONGEST_JITTER_MS,
  MISSED_TIMES,
  SCHEDULES_CHECK_MS,
  SHORTEST_INTERVAL_MS,
} from "./definition-limits.ts";
import type { Path } from "./definition-problem.ts";
import type { JsonSchema, WorkflowSchedule } from "./definition.ts";

const text = v.pipe(v.string(), v.nonEmpty());

const writtenSchedule = v.strictObject({
  name: v.pipe(
    v.string(),
    v.regex(/^[A-Za-z0-9_-]{1,64}$/, "The name of a schedule is 1-64 letters, digits, `_` and `-`"),
    v.description("Unique in the definition."),
  ),
  cron: v.optional(v.pipe(text, v.description("Minute, hour, day of the month, month, day of the week."))),
  timeZone: v.optional(v.pipe(text, v.description("Name in the IANA time zone database; default `UTC`."))),
  every: v.optional(
    duration("Time between planned times, instead of `cron`. Planned times are its multiples since 1970; at least `1s`."),
  ),
  parameters: v.optional(v.pipe(jsonObject, v.description("The parameters of its runs; default `{}`."))),
  enabled: v.optional(v.pipe(v.boolean(), v.description("`false` switches it off."))),
  jitter: v.optional(duration("Longest delay of a start, so that not all schedules start at once; at most `1h`.")),
  catchUp: v.optional(
    v.pipe(
      v.number(),
      v.integer("This is a whole number"),
      v.minValue(0, `Missed times are 0 to ${MISSED_TIMES}`),
      v.maxValue(MISSED_TIMES, `Missed times are 0 to ${MISSED_TIMES}`),
      v.description("How many planned times that were missed are started late, the newest ones; default 1."),
    ),
  ),
  overlap: v.optional(
    v.pipe(
      v.picklist(["queue", "allow", "skip", "cancel"]),
      v.description(
        "What happens at a planned time while the run before it goes on: the new run waits; it starts, too; it is left out; or the earlier run is cancelled. Default: `queue`.",
      ),
    ),
  ),
});
type Written = v.InferOutput<typeof writtenSchedule>;

/** `schedules` of a definition, as it is written. */
export const writtenSchedules = v.pipe(
  v.array(writtenSchedule),
  v.maxLength(DEFINITION_SCHEDULES, `A definition has at most ${DEFINITION_SCHEDULES} schedules`),
  v.description("Planned times at which the workflow runs by itself."),
);

interface Checking {
  /** The schema of the definition's parameters, if it is valid. */
  readonly schema: JsonSchema | undefined;
  /** Tells what is wrong at a path in the definition. */
  report(path: Path, message: string): void;
}

/** The schedules of a definition, after the checks that their shape does not make. `raw`: as the document has them. */
export function compileSchedules(
  written: readonly Written[],
  raw: readonly unknown[],
  { schema, report }: Checking,
): readonly WorkflowSchedule[] {
  const names = new Set<string>();
  const faultsOf = parametersCheck();
  return written.map((each, at) => {
    const wrong = (key: string, message: string) => report(["schedules", at, key], message);
    if (names.has(each.name)) wrong("name", "Another schedule has this name");
    names.add(each.name);
    if (each.jitter !== undefined && each.jitter > LONGEST_JITTER_MS) wrong("jitter", "The delay of a start is at most 1 hour");
    // Parsed objects have lost keys such as `__proto__`.
    const { parameters = {} } = raw[at] as { readonly parameters?: Readonly<Record<string, unknown>> };
    for (const fault of schema ? faultsOf(schema, parameters) : []) wrong("parameters", fault);
    const { name, catchUp, overlap, jitter, enabled = true } = each;
    return { name, timing: timingOf(each, wrong), parameters, enabled, jitterMs: jitter, catchUp, overlap };
  });
}

/** Checks the parameters of all schedules of a definition, which share the time. */
function parametersCheck(): (schema: JsonSchema, parameters: Readonly<Record<string, unknown>>) => readonly string[] {
  let leftMs = SCHEDULES_CHECK_MS;
  return (schema, parameters) => {
    const job = { schema: JSON.stringify(schema), value: JSON.stringify(parameters), allFaults: true, fillsDefaults: true };
    const begun = performance.now();
    const result = leftMs > 0 ? checkJsonNow(job, leftMs) : undefined;
    leftMs -= performance.now() - begun;
    if (!result) return ["The parameters of the schedules take too long to be checked against the schema"];
    if ("unusable" in result) return [result.unusable];
    return "faults" in result ? result.faults.map(toShown).map(({ path, message }) => `The parameter ${path} ${message}`) : [];
  };
}

function timingOf({ cron, timeZone, every }: Written, wrong: (key: string, message: string) => void): ports.ScheduleTiming {
  if (cron === undefined && every === undefined) wrong("name", "A schedule has either `cron` or `every`");
  if (cron !== undefined && every !== undefined) wrong("every", "A schedule has either `cron` or `every`");
  if (timeZone !== undefined && cron === undefined) wrong("timeZone", "A time zone is for `cron` only");
  if (every !== undefined && every < SHORTEST_INTERVAL_MS) wrong("every", "The time between planned times is at least 1 second");
  if (cron === undefined) return { everyMs: every ?? SHORTEST_INTERVAL_MS };
  if (timeZone !== undefined && !isTimeZone(timeZone)) wrong("timeZone", "This time zone is not known");
  else if (!hasTimes(cron, timeZone)) wrong("cron", cronFault(cron));
  return { cron, timeZone };
}

function isTimeZone(timeZone: string): boolean {
  try {
    Intl.DateTimeFormat("en", { timeZone });
    return true;
  } catch {
    return false;
  }
}

const CRON_FIELDS = [
  "The minute of a cron expression is `*`, 0-59, a list `0,30`, a range `0-15`, or steps `*/5`",
  "The hour of a cron expression is `*`, 0-23, a list `6,18`, a range `9-17`, or steps `*/2`",
  "The day of the month of a cron expression is `*`, 1-31, `L` for the last one, a list, a range, or steps",
  "The month of a cron expression is `*`, 1-12 or JAN-DEC, a list, a range, or steps",
  "The day of the week of a cron expression is `*`, 0-7 or SUN-SAT, a list, a range, or steps; 0 and 7 are Sunday",
] as const;

/** Why an expression is not valid, by its fields. */
function cronFault(cron: string): string {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== CRON_FIELDS.length) {
    return `A cron expression has five fields: minute, hour, day of the month, month, day of the week; this one has ${fields.length}`;
  }
  const wrong = fields.findIndex(
    (field, at) => !hasTimes(CRON_FIELDS.map((_each, index) => (index === at ? field : "*")).join(" ")),
  );
  return CRON_FIELDS[wrong] ?? "This cron expression has no planned time: its day never comes";
}

function hasTimes(cron: string, timezone = "UTC"): boolean {
  try {
    return new Cron(cron, { timezone, mode: "5-part", paused: true }).nextRun(new Date(0)) !== null;
  } catch {
    return false;
  }
}
