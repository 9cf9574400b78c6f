import "uplot/dist/uPlot.min.css";
import UPlot from "uplot";
import type { ChartContent, ChartLook, DrawnChart } from "./chart.ts";

const AXIS_WIDTH = 58;
const AXIS_HEIGHT = 28;
/** The label of a time at the end of the axis is centred there. */
const HALF_LABEL = 28;
const WHOLE_STEPS = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
/** Each line has another pattern, so that colour alone does not tell lines apart, and a line below another one is seen in its gaps. */
const DASHES = [[], [8, 5], [2, 4], [10, 4, 2, 4]] as const;
/** Of a point: the first line's is seen around another one. */
const POINTS = [7, 4] as const;
/** With less space, only values between two gaps have a point: without it, they would not be seen. */
const SPACE_OF_POINT = 8;

/** Draws a chart into an element. uPlot styles its elements by script, which the page's policy allows. */
export function drawChart(into: HTMLElement, content: ChartContent, look: ChartLook, width: number): DrawnChart {
  const options = (lines: ChartContent["lines"]): UPlot.Options => ({
    width,
    height: look.height,
    padding: [8, HALF_LABEL, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    tzDate: (seconds) => inZone(seconds, look.timeZone),
    scales: { y: { range: (_chart, _least, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      {
        stroke: () => look.textColour(),
        font: look.font,
        size: AXIS_HEIGHT,
        grid: { show: false },
        ticks: { show: false },
        values: (_chart, splits) => splits.map((seconds) => look.writeTime(new Date(seconds * 1000))),
        space: 64,
      },
      {
        stroke: () => look.textColour(),
        font: look.font,
        size: AXIS_WIDTH,
        grid: { stroke: () => look.gridColour(), width: 1 },
        ticks: { show: false },
        ...(look.isWhole && { incrs: WHOLE_STEPS }),
        values: (_chart, splits) => splits.map((value) => look.writeValue(value, true)),
      },
    ],
    series: [
      {},
      ...lines.map((line, at) => ({
        label: line.label,
        stroke: () => look.lineColour(at),
        width: 2,
        ...(look.isStepped
          ? {
              paths: UPlot.paths.stepped!({ align: 1 }),
              points: { show: false },
              ...(lines.length === 1 && { fill: () => translucent(look.lineColour(at)) }),
            }
          : { points: { size: POINTS[at === 0 ? 0 : 1], show: true, filter: pointsOf, fill: () => look.lineColour(at) } }),
        dash: [...DASHES[at % DASHES.length]!],
      })),
    ],
    hooks: {
      setCursor: [({ cursor: { idx } }) => look.pointed(idx == null ? undefined : Math.min(idx, shown.times.length - 1))],
    },
  });
  let shown = content;
  const dataOf = look.isStepped ? steppedDataOf : pointDataOf;
  let chart = new UPlot(options(content.lines), dataOf(content), into);
  return {
    show(next) {
      const isSame = next.lines.map(({ label }) => label).join("\n") === shown.lines.map(({ label }) => label).join("\n");
      shown = next;
      if (isSame) return chart.setData(dataOf(next));
      chart.destroy();
      chart = new UPlot(options(next.lines), dataOf(next), into);
    },
    resize(next) {
      width = next;
      chart.setSize({ width, height: look.height });
    },
    redraw: () => chart.redraw(false, true),
    close: () => chart.destroy(),
  };
}

/** The values with a point. */
function pointsOf(chart: UPlot, line: number): number[] {
  const values = chart.data[line]!;
  const isKnown = (at: number) => values[at] !== null && values[at] !== undefined;
  const isWide = chart.bbox.width / devicePixelRatio >= values.length * SPACE_OF_POINT;
  return Array.from(values.keys()).filter((at) => isKnown(at) && (isWide || (!isKnown(at - 1) && !isKnown(at + 1))));
}

/** A computed colour, as the area below a line. */
function translucent(colour: string): string {
  return colour.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)");
}

/** The last value lasts as long as the one before it. */
function steppedDataOf({ times, lines }: ChartContent): UPlot.AlignedData {
  const last = times.at(-1);
  if (last === undefined) return pointDataOf({ times, lines });
  const end = last + (last - (times.at(-2) ?? last - 1));
  return pointDataOf({
    times: [...times, end],
    lines: lines.map((line) => ({ ...line, values: [...line.values, line.values.at(-1) ?? null] })),
  });
}

function pointDataOf({ times, lines }: ChartContent): UPlot.AlignedData {
  return [times.map((at) => at / 1000), ...lines.map(({ values }) => [...values])];
}

function inZone(seconds: number, timeZone: string | undefined): Date {
  const at = new Date(seconds * 1000);
  return timeZone === undefined ? at : UPlot.tzDate(at, timeZone);
}
