import type { CallResult } from "@portico/core/client";
import type { measurementsContract } from "@portico/operator/measurements/contract";
import type { ChartLine } from "../../blocks/chart/chart.ts";
import type { Choice } from "./choice.ts";
import { type ChartOf, line } from "./lines.ts";

export type WorkReport = CallResult<typeof measurementsContract.workOverTime>;
type WorkSeries = WorkReport["series"][number];
type Shown = Exclude<Choice["show"], "">;

const KINDS: Readonly<Record<string, string>> = {
  turn: "Turns",
  run: "Workflow runs",
  webhook: "Webhook events",
  request: "Requests",
};
const FAILURES: Readonly<Record<Shown, string>> = {
  all: "Failed turns and runs, refused events, and requests with status 500 or higher",
  turn: "Turns that ended with an error",
  run: "Runs that ended with an error",
  webhook: "Refused events",
  request: "Requests with status 500 or higher, and broken answers",
};
const STOPPED: Readonly<Record<Shown, string>> = {
  all: "By users and callers, limits and restarts",
  turn: "By users, limits and restarts",
  run: "By users, deadlines and restarts",
  webhook: "",
  request: "By callers that left",
};

/** The charts of ended work: a line for each kind, or for each name of a kind. */
export function chartsOfWork(report: WorkReport, show: Shown): readonly ChartOf[] {
  const each = (pick: (series: WorkSeries) => readonly (number | null)[]): readonly ChartLine[] =>
    report.series.map((series) => line(nameOf(series, show), pick(series), series.isRest));
  const count = (id: string, title: string, about: string, pick: (series: WorkSeries) => readonly number[]): ChartOf => ({
    ...{ id, title, about, unit: "count", lines: each(pick) },
  });
  const duration = (share: "durationP50" | "durationP95", title: string): ChartOf => ({
    ...{ id: share, title, about: "From the beginning to the end, of completed work", unit: "duration" },
    lines: each((series) => series[share]),
  });
  return [
    count("ended", show === "all" ? "Work" : KINDS[show]!, "By the time of their end", endedOf),
    count("failed", "Failures", FAILURES[show], ({ failed }) => failed),
    ...(show === "webhook"
      ? []
      : [
          count("stopped", "Stopped", STOPPED[show], ({ cancelled, interrupted }) => sum(cancelled, interrupted)),
          duration("durationP50", "Duration, median"),
          duration("durationP95", "Duration, 95th percentile"),
        ]),
  ];
}

/** The failures of each kind of work as lines. */
export function failuresOfWork({ series }: WorkReport): readonly ChartLine[] {
  return series.map((one) => line(nameOf(one, "all"), one.failed));
}

function endedOf({ completed, failed, cancelled, interrupted }: WorkSeries): readonly number[] {
  return sum(sum(completed, failed), sum(cancelled, interrupted));
}

function nameOf({ value, isRest }: WorkSeries, show: Shown): string {
  if (isRest || value === undefined) return "All others";
  return show === "all" ? (KINDS[value] ?? value) : value;
}

function sum(some: readonly number[], others: readonly number[]): readonly number[] {
  return some.map((value, at) => value + others[at]!);
}
