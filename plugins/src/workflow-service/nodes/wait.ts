import type { ports } from "@portico/core";
import * as v from "valibot";
import { duration } from "../definition/parse-duration.ts";

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

const time = v.pipe(
  v.string(),
  v.check(
    (text) => TIME.test(text) && Number.isFinite(Date.parse(text)),
    "This is no time: write ISO 8601 with a time zone, such as `2030-01-31T09:00:00Z`",
  ),
);

export const waitNode: ports.NodeRules = {
  type: "wait",
  input: v.strictObject({
    for: v.optional(duration("How long: a duration.")),
    until: v.optional(v.pipe(time, v.description("Till when: a time of ISO 8601. One that is over is not waited for."))),
  }),
  check: (written) =>
    "for" in written === "until" in written ? [{ path: [], message: "A wait has one of `for` and `until`" }] : [],
  repeatable: true,
};
