import type { ports } from "@portico/core";
import type { Days } from "@portico/core/kit";
import { addLatencies, addTo, bucketOf, type Latencies, percentilesOf } from "./latency.ts";
import { GroupedWrites } from "./grouped-writes.ts";
import { stepsOf } from "./read-series.ts";
import { type StoredUsage, storedBetween } from "./read-usage.ts";

/** Ended work as it is stored: of one process, in one bucket of time, of one kind and name. */
export interface StoredWork extends Pick<StoredUsage, "kind" | "at" | "life"> {
  readonly work: ports.EndedWorkKind;
  /** Absent for all names beyond the bound of a bucket. */
  readonly name?: string;
  /** Outcomes that did not happen are absent. */
  readonly counts: Partial<Outcomes>;
  readonly durations?: Latencies;
}

/** How the adapter stores ended work. */
export const WORK_COLLECTION = { name: "ended-work", indexes: { byTime: ["kind", "at"] } } as const;

type Outcomes = Record<ports.EndedWorkOutcome, number>;

interface WorkRow {
  readonly counts: Partial<Outcomes>;
  readonly durations: Latencies;
  write(): ports.Write;
}

interface WorkBucket {
  readonly at: number;
  readonly rows: Map<string, WorkRow>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Every request ends, so that its counts are written less often than those of model calls. */
const FLUSH_MS = 10_000;
/** Kinds and names per bucket in one process. */
const MOST_ROWS = 1000;
const LONGEST = 256;

interface Given {
  readonly records: ports.Records;
  readonly clock: ports.Clock;
  readonly life: string;
  readonly days: Days;
  readonly failed: (error: unknown) => void;
}

/** Counts of ended work in records of this process. */
export class WorkCounts {
  readonly stored: ports.Collection<StoredWork>;
  readonly #given: Given;
  readonly #writes: GroupedWrites;
  readonly #buckets: Partial<Record<StoredWork["kind"], WorkBucket>> = {};
  /** The rows of work that ended in the present minute, by its kind and its name as it was given: every request comes here. */
  #found = new Map<string, readonly WorkRow[]>();
  #rows = 0;

  constructor(given: Given) {
    this.#given = given;
    this.stored = given.records.collection<StoredWork>(WORK_COLLECTION);
    this.#writes = new GroupedWrites({ ...given, flushMs: FLUSH_MS });
  }

  add({ kind, name, outcome, durationMs }: ports.EndedWork): void {
    const rows = this.#rowsOf(kind, name);
    const bucket = outcome === "completed" ? bucketOf(durationMs) : undefined;
    for (const { counts, durations } of rows) {
      counts[outcome] = (counts[outcome] ?? 0) + 1;
      addTo(durations, bucket);
    }
    this.#writes.mark(rows);
  }

  /** The steps and series of a query. Throws UsageTooWide. */
  async read({ since, until, step, kind, top }: ports.EndedWorkQuery): Promise<Pick<ports.EndedWorkReport, "steps" | "series">> {
    await this.#writes.write();
    const { days } = this.#given;
    const steps = stepsOf(since, until, step, days);
    const [first] = steps;
    if (first === undefined) return { steps, series: [] };
    const valueOf = (row: StoredWork) => (kind === undefined ? row.work : row.name);
    const stored = this.stored;
    const wanted = async function* () {
      for await (const row of storedBetween(stored, step, first, until)) if (kind === undefined || row.work === kind) yield row;
    };

    // Read twice, so that the memory holds the points of the chosen values alone.
    const totals = new Map<string, number>();
    for await (const row of wanted()) {
      const value = valueOf(row);
      if (value !== undefined) totals.set(value, (totals.get(value) ?? 0) + sumOf(row.counts));
    }
    const own = [...totals].sort(([, one], [, other]) => other - one).slice(0, top);
    const places = new Map(steps.map((at, place) => [at, place]));
    const found = new Map<string | undefined, Map<number, Point>>(own.map(([value]) => [value, new Map()]));
    const rest = new Map<number, Point>();
    for await (const row of wanted()) {
      const place = places.get(step === "day" ? days.startOf(row.at) : row.at);
      if (place === undefined) continue;
      const points = found.get(valueOf(row)) ?? rest;
      let point = points.get(place);
      if (!point) points.set(place, (point = { counts: noOutcomes(), durations: {} }));
      for (const [outcome, count] of Object.entries(row.counts)) point.counts[outcome as ports.EndedWorkOutcome] += count;
      if (row.durations) addLatencies(point.durations, row.durations);
    }
    const whole = (points: Map<number, Point>) => steps.map((_, place) => toPoint(points.get(place)));
    return {
      steps,
      series: [
        ...own.map(([value]) => ({ value, isRest: false, points: whole(found.get(value)!) })),
        ...(rest.size > 0 ? [{ value: undefined, isRest: true, points: whole(rest) }] : []),
      ],
    };
  }

  close(): Promise<void> {
    return this.#writes.close();
  }

  #rowsOf(kind: ports.EndedWorkKind, name: string): readonly WorkRow[] {
    const now = this.#given.clock.now();
    const minute = now - (now % MINUTE_MS);
    if (this.#buckets.minute?.at !== minute) this.#found = new Map();
    const key = `${kind} ${name}`;
    const found = this.#found.get(key);
    if (found) return found;
    const starts = { minute, hour: now - (now % HOUR_MS), day: this.#given.days.startOf(now) };
    const text = name.slice(0, LONGEST).toWellFormed().replaceAll("\0", "\uFFFD");
    const rows = (["minute", "hour", "day"] as const).map((length) =>
      this.#rowOf(this.#bucket(length, starts[length]), length, kind, text),
    );
    if (this.#found.size < MOST_ROWS && name.length <= LONGEST) this.#found.set(key, rows);
    return rows;
  }

  #bucket(length: StoredWork["kind"], at: number): WorkBucket {
    const found = this.#buckets[length];
    if (found?.at === at) return found;
    return (this.#buckets[length] = { at, rows: new Map() });
  }

  #rowOf({ at, rows }: WorkBucket, length: StoredWork["kind"], work: ports.EndedWorkKind, name: string | undefined): WorkRow {
    const key = `${work} ${name ?? ""}`;
    const found = rows.get(key);
    if (found) return found;
    if (rows.size >= MOST_ROWS && name !== undefined) return this.#rowOf({ at, rows }, length, work, undefined);
    const { life } = this.#given;
    const id = `${length}-${at}-${life}-${++this.#rows}`;
    const counts: Partial<Outcomes> = {};
    const durations: Latencies = {};
    const row: WorkRow = {
      counts,
      durations,
      write: () =>
        this.stored.write.put(id, {
          ...{ kind: length, at, life, work, counts: { ...counts } },
          ...(name !== undefined && { name }),
          ...(Object.keys(durations).length > 0 && { durations: { ...durations } }),
        }),
    };
    rows.set(key, row);
    return row;
  }
}

interface Point {
  readonly counts: Outcomes;
  readonly durations: Latencies;
}

function noOutcomes(): Outcomes {
  return { completed: 0, failed: 0, cancelled: 0, interrupted: 0 };
}

function sumOf(counts: Partial<Outcomes>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function toPoint({ counts, durations }: Point = { counts: noOutcomes(), durations: {} }): ports.EndedWorkPoint {
  return { counts, duration: percentilesOf(durations) };
}
