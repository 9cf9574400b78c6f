import { isExistingDay, orAborted } from "@portico/core";
import * as v from "valibot";
import { duration } from "../definition/definition-limits.ts";
import { parseInput } from "../runner/node-values.ts";
import type { NodeKind } from "../runner/running.ts";
import { workName } from "../runs/run-id.ts";

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

const time = v.pipe(
  v.string(),
  v.check(
    (text) => TIME.test(text) && isExistingDay(text) && Number.isFinite(Date.parse(text)),
    "This is not a time: write ISO 8601 with a time zone, such as `2030-01-31T09:00:00Z`",
  ),
);

const input = v.strictObject({
  for: v.optional(duration("Length of the wait: a duration.")),
  until: v.optional(v.pipe(time, v.description("The end of the wait: an ISO 8601 time. A time in the past does not wait."))),
});

/** Waits for a duration, or until a time. A long wait costs only one record. */
export const waitKind: NodeKind = {
  type: "wait",
  input,
  check: (written) =>
    "for" in written === "until" in written ? [{ path: [], message: "A wait has one of `for` and `until`" }] : [],
  repeatable: true,
  waits: true,
  async play(play) {
    const { running, nodeId, frame, inputs } = play;
    const { context, services } = running;
    const { for: ms, until } = parseInput(input, inputs);
    const startedAt = await context.step(workName(nodeId, "begun"), async () => services.clock.now(), { repeatable: true });
    // `check` has ensured that one of the two is set.
    const waitedMs = ms ?? Math.max(0, Date.parse(until!) - startedAt);
    const left = () => startedAt + waitedMs - services.clock.now();
    // No longer than the run's remaining time, because the run must react to its timeout. A parallel gate may prolong that time.
    for (let part = 1; left() > 0; part++) {
      const most = play.left();
      // The deadline reports the timeout of the run.
      if (most <= 0) await orAborted(new Promise<never>(() => {}), frame.signal);
      await orAborted(
        context.sleep(workName(nodeId, part === 1 ? "wait" : `wait #${part}`), Math.min(left(), most)),
        frame.signal,
      );
    }
    return { output: { waitedMs }, attempts: 1, startedAt };
  },
};
