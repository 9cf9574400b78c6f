import type { ChartLine } from "../../blocks/chart/chart.ts";
import { type ChartOf, chartsOf, line, type Report } from "../measurements/lines.ts";
import { failuresOfWork, type WorkReport } from "../measurements/work-lines.ts";
import { writeValue } from "../measurements/write-value.ts";

/** A chart of the overview. */
export interface SmallChart extends Pick<ChartOf, "id" | "title" | "unit" | "lines"> {
  /** The sum of the day, or what the lines are. */
  readonly about: string;
  /** The page of measurements shows more of it with this query. */
  readonly query: string;
}

/** The charts of the last day: calls, failures, costs or else tokens, and latencies. Empty without calls and without failures. */
export function smallCharts(models: Report, work: WorkReport): readonly SmallChart[] {
  const ofModels = chartsOf(models, "");
  const find = (id: string): ChartOf | undefined => ofModels.find((chart) => chart.id === id);
  const failures = failuresOf(models, work);
  if (models.series.length === 0 && totalOf(failures) === 0) return [];
  const [calls, spent, latency] = [find("calls")!, find("cost") ?? find("tokens")!, find("duration")!];
  const small = ({ id, title, unit, lines }: ChartOf, about: string): SmallChart => ({
    ...{ id, title, unit, lines, about, query: "range=day" },
  });
  const currency = spent.unit === "money" ? ` ${models.currency}` : "";
  return [
    small(calls, `${writeValue(totalOf(calls.lines), "count")} calls of models`),
    {
      ...{ id: "failures", title: "Failures", unit: "count", lines: failures },
      ...{ about: `${writeValue(totalOf(failures), "count")} in all`, query: "show=all&range=day" },
    },
    small(spent, `${writeValue(totalOf(spent.lines), spent.unit)}${currency}`),
    small(latency, "of calls of models"),
  ];
}

/** Without lines that are zero all day, so that the others are seen. One line in a day without failures. */
function failuresOf({ series: [calls] }: Report, work: WorkReport): readonly ChartLine[] {
  const all = [...(calls ? [line("Calls of models", calls.failed)] : []), ...failuresOfWork(work)];
  const some = all.filter(({ values }) => values.some((value) => value !== 0));
  return some.length > 0 ? some : all.slice(0, 1);
}

function totalOf(lines: readonly ChartLine[]): number {
  return lines.flatMap(({ values }) => values).reduce<number>((sum, value) => sum + (value ?? 0), 0);
}
