import type { CallResult } from "@portico/core/client";
import type { conversationsRunsContract } from "@portico/plugins/conversations-runs/contract";
import { describeDuration } from "./run.ts";

export type TracedTurn = CallResult<typeof conversationsRunsContract.trace>["turns"][number];
type Trace = NonNullable<TracedTurn["trace"]>;
type Entry = Trace["entries"][number];

/** One line of a timeline. */
export interface TimelineRow {
  readonly title: string;
  /** What the service measured, as text. */
  readonly facts: string;
  readonly error: string | undefined;
  readonly kind: Entry["kind"];
  /** Place and width of its bar, in percent of the whole. */
  readonly from: number;
  readonly width: number;
  /** Of a model call: the part until the first token, in percent of the bar. */
  readonly first: number;
}

const TITLES: Readonly<Record<Exclude<Entry["kind"], "model" | "tool">, string>> = {
  admission: "Accepted",
  queue: "Waited in the queue",
  start: "Began",
  wait: "Waited for a person",
  delivery: "Delivered",
};

const count = new Intl.NumberFormat();
/** So that short parts can be seen. */
const LEAST_WIDTH = 0.6;

/** The lines of a trace, in the order in which its parts began. */
export function toTimeline({ entries }: Trace): readonly TimelineRow[] {
  const whole = Math.max(1, ...entries.map(({ start_ms, duration_ms }) => start_ms + duration_ms));
  return entries
    .toSorted((one, other) => one.start_ms - other.start_ms)
    .map((entry) => {
      const width = Math.max((entry.duration_ms / whole) * 100, LEAST_WIDTH);
      return {
        title: titleOf(entry),
        facts: factsOf(entry),
        error: entry.error,
        kind: entry.kind,
        from: Math.min((entry.start_ms / whole) * 100, 100 - width),
        width,
        first: entry.duration_ms > 0 ? Math.min(((entry.first_token_ms ?? 0) / entry.duration_ms) * 100, 100) : 0,
      };
    });
}

function titleOf({ kind, name = "unknown" }: Entry): string {
  if (kind === "model") return `Model ${name}`;
  return kind === "tool" ? `Tool ${name}` : TITLES[kind];
}

function factsOf({ start_ms, duration_ms, first_token_ms, input_tokens, output_tokens }: Entry): string {
  return [
    `${describeDuration(duration_ms)}, after ${describeDuration(start_ms)}`,
    first_token_ms !== undefined && `first token after ${describeDuration(first_token_ms)}`,
    input_tokens !== undefined && `${count.format(input_tokens)} tokens in`,
    output_tokens !== undefined && `${count.format(output_tokens)} out`,
  ]
    .filter((fact) => fact !== false)
    .join(" · ");
}
