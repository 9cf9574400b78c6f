import type { CallResult } from "@portico/core/client";
import type { measurementsContract } from "@portico/operator/measurements/contract";
import type { ChartLine } from "../../blocks/chart/chart.ts";
import { type Choice, nameOfPart } from "./choice.ts";

export type Report = CallResult<typeof measurementsContract.overTime>;
type Series = Report["series"][number];

/** One chart of the page. */
export interface ChartOf {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  readonly unit: "count" | "duration" | "money";
  readonly lines: readonly ChartLine[];
}

const DURATION = "Of calls that did not fail";
const FIRST_TOKEN = "Until a streamed answer began";
/** The charts of a report: a line for all calls, or one for each value. */
export function chartsOf(report: Report, by: Choice["by"]): readonly ChartOf[] {
  const { currency } = report;
  const money = currency === undefined ? [] : [{ id: "cost", title: "Cost", about: `In ${currency}`, unit: "money" as const }];
  const counts = [
    { id: "calls", title: "Calls", about: "Every call of a model", unit: "count" as const },
    { id: "failed", title: "Failures", about: "Refused, broken and unanswered calls", unit: "count" as const },
    { id: "tokens", title: "Tokens", about: "As providers report them", unit: "count" as const },
    ...money,
  ];
  const latencies = [
    { id: "duration", title: "Latency", about: DURATION },
    { id: "firstToken", title: "First token", about: FIRST_TOKEN },
  ] as const;
  const [all] = report.series;
  if (by === "")
    return [
      ...counts.map((chart) => ({ ...chart, lines: all ? linesOfAll(chart.id, chart.title, all) : [] })),
      ...latencies.map(({ id, ...chart }) => ({
        ...{ ...chart, id, unit: "duration" as const },
        lines: all ? [line("Median", all[`${id}P50`]), line("95th percentile", all[`${id}P95`])] : [],
      })),
    ];
  const each = (pick: (series: Series) => readonly (number | null)[]) =>
    report.series.map((series) => line(nameOfPart(series, by), pick(series), series.isRest));
  return [
    ...counts.map((chart) => ({ ...chart, lines: each((series) => columnOf(chart.id, series)) })),
    ...latencies.flatMap(({ id, title, about }) => [
      { id: `${id}P50`, title: `${title}, median`, about, unit: "duration" as const, lines: each((of) => of[`${id}P50`]) },
      {
        ...{ id: `${id}P95`, title: `${title}, 95th percentile`, about, unit: "duration" as const },
        lines: each((of) => of[`${id}P95`]),
      },
    ]),
  ];
}

function linesOfAll(id: string, title: string, series: Series): readonly ChartLine[] {
  if (id === "tokens") return [line("Input", series.inputTokens), line("Output", series.outputTokens)];
  return [line(title, columnOf(id, series))];
}

function columnOf(id: string, series: Series): readonly number[] {
  if (id === "calls") return series.calls;
  if (id === "failed") return series.failed;
  if (id === "cost") return series.cost ?? [];
  return series.inputTokens.map((tokens, at) => tokens + series.outputTokens[at]!);
}

/** A line of a chart. */
export function line(label: string, values: readonly (number | null)[], isRest = false): ChartLine {
  return { label, values, isRest };
}
