import { defineAdapter, ports, retryWhileStoreAway, type Scope } from "@portico/core";
import { daysOf } from "@portico/core/kit";
import type { EndedRequests } from "../telemetry/ended-requests.ts";
import { GroupedWrites } from "./records/grouped-writes.ts";
import { addTo, bucketOf, type Latency, noLatency } from "./records/latency.ts";
import { createPriceOf } from "./records/prices.ts";
import type { PriceTable } from "./usage-options.ts";
import { readSeries } from "./records/read-series.ts";
import { addSums, noSums, readUsage, type StoredUsage, storedBetween } from "./records/read-usage.ts";
import { sweepHourly } from "./records/sweep-hourly.ts";
import { Bucket, keyOf, noCounts, type Tally } from "./records/tally.ts";
import { WorkCounts } from "./records/work-counts.ts";

export { pricesAt } from "./records/prices.ts";
export type { ModelPrice, PriceTable } from "./usage-options.ts";

/** Options of `recordUsage`. */
export interface RecordUsageOptions {
  /** IANA time zone of days and daily limits. Default: `UTC`. */
  readonly timeZone?: string | undefined;
  /** Default: no prices, and so no costs. */
  readonly prices?: PriceTable | undefined;
  /** Counts these requests, too: the result of `createEndedRequests()`, which the adapter `telemetry/opentelemetry` feeds. Default: none. */
  readonly requests?: EndedRequests | undefined;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FLUSH_MS = 1000;
/** How old the counts of other processes may be that limits see, in addition to the second in which they write them. */
const OTHERS_MS = 4000;
/** Subjects per bucket in one process. */
const MOST_SUBJECTS = 1000;
/** The same of the current day. Limits of a day need more of them. */
const MOST_SUBJECTS_OF_DAY = 10_000;
const LONGEST = 256;
/** Subjects with longer names are not remembered. */
const LONGEST_KEY = 2048;

interface Row extends Tally {
  readonly id: string;
  readonly kind: StoredUsage["kind"];
  readonly at: number;
  readonly latency: Latency;
  write(): ports.Write;
}

/** The rows that count a subject now: of the minute, the hour and the day. */
interface SubjectRows {
  readonly subject: ports.UsageSubject;
  readonly rows: readonly Row[];
}

/**
 * Usage in any adapter of the port `records`. Each process writes records of its own with its whole counts, so that processes need
 * no locks, and a write whose end is unknown is repeated without harm.
 */
export const recordUsage = defineAdapter({
  name: "usage/records",
  port: ports.usage,
  needs: { records: ports.records, clock: ports.clock, ids: ports.ids, telemetry: ports.telemetry },
  open: (given, options: RecordUsageOptions, scope): ports.Usage => new RecordedUsage(given, options, scope),
});

interface Given {
  readonly records: ports.Records;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  readonly telemetry: ports.Telemetry;
}

class RecordedUsage implements ports.Usage {
  readonly #given: Given;
  readonly #stored: ports.Collection<StoredUsage>;
  readonly #life: string;
  readonly timeZone: string;
  readonly #days: ReturnType<typeof daysOf>;
  readonly #priceOf: ReturnType<typeof createPriceOf>;
  readonly #currency: string | undefined;
  readonly #writes: GroupedWrites;
  readonly #work: WorkCounts;
  #rows = 0;
  #minute: Bucket<Row>;
  #hour: Bucket<Row>;
  #day: Bucket<Row>;
  /** The rows of subjects that were counted in the present minute, by the subject as its caller gave it: finding them costs most of a count. */
  #found = new Map<string, SubjectRows>();
  #others: { readonly since: number; readonly readAt: number; readonly tallies: Promise<ports.UsageDay["groups"]> } | undefined;

  constructor(given: Given, { timeZone = "UTC", prices, requests }: RecordUsageOptions, scope: Scope) {
    this.#given = given;
    this.#stored = given.records.collection<StoredUsage>({ name: "usage", indexes: { byTime: ["kind", "at"] } });
    this.#life = given.ids.id("");
    this.timeZone = timeZone;
    this.#days = daysOf(timeZone);
    this.#priceOf = createPriceOf(prices);
    this.#currency = prices?.currency;
    const now = given.clock.now();
    this.#minute = this.#bucket("minute", now - (now % MINUTE_MS));
    this.#hour = this.#bucket("hour", now - (now % HOUR_MS));
    this.#day = this.#bucket("day", this.#days.startOf(now), MOST_SUBJECTS_OF_DAY);
    const failed = (what: string) => (error: unknown) => given.telemetry.log.warn(what, {}, error);
    const own = { ...given, life: this.#life, days: this.#days };
    this.#writes = new GroupedWrites({
      ...given,
      flushMs: FLUSH_MS,
      failed: failed("The usage of model calls could not be stored"),
    });
    scope.onClose(() => this.#writes.close());
    this.#work = new WorkCounts({ ...own, failed: failed("The counts of ended work could not be stored") });
    scope.onClose(() => this.#work.close());
    if (requests) scope.onClose(requests.listen((ended) => this.#work.add({ kind: "request", ...ended })));
    sweepHourly(given, [this.#stored, this.#work.stored], scope);
  }

  async begin(subject: ports.UsageSubject, signal: AbortSignal): Promise<ports.UsageCall> {
    const call = this.note(subject);
    await retryWhileStoreAway({ clock: this.#given.clock, signal }, () => this.#writes.write());
    return call;
  }

  note(named: ports.UsageSubject): ports.UsageCall {
    const { subject, rows } = this.#rowsOf(named);
    for (const { counts } of rows) {
      counts.calls++;
      counts.unknown++;
    }
    this.#writes.mark(rows);
    const at = this.#given.clock.now();
    let hasEnded = false;
    return {
      end: ({ inputTokens, outputTokens, cachedInputTokens = 0, cacheWriteTokens = 0, isRefused = false, ...more }) => {
        if (hasEnded) return undefined;
        hasEnded = true;
        const isFailed = isRefused || more.isFailed === true;
        const isReported = inputTokens !== undefined && outputTokens !== undefined;
        const isKnown = isRefused || isReported;
        const tokens = {
          inputTokens: whole(inputTokens),
          outputTokens: whole(outputTokens),
          cachedInputTokens: whole(cachedInputTokens),
          cacheWriteTokens: whole(cacheWriteTokens),
        };
        const duration = isFailed ? undefined : bucketOf(more.durationMs);
        const firstToken = bucketOf(more.firstTokenMs);
        for (const { counts, latency } of rows) {
          if (isRefused) counts.refused++;
          if (isFailed) counts.failed++;
          if (isKnown) counts.unknown--;
          counts.inputTokens += tokens.inputTokens;
          counts.outputTokens += tokens.outputTokens;
          counts.cachedInputTokens += tokens.cachedInputTokens;
          counts.cacheWriteTokens += tokens.cacheWriteTokens;
          addTo(latency.durations, duration);
          addTo(latency.firstTokens, firstToken);
        }
        this.#writes.mark(rows);
        if (!isReported || this.#currency === undefined) return undefined;
        const { cost, unpriced } = this.#priceOf(subject, at, { ...noCounts(), ...tokens, calls: 1 });
        return unpriced > 0 ? undefined : { cost, currency: this.#currency };
      },
    };
  }

  async read(query: ports.UsageQuery): Promise<ports.UsageReport> {
    await this.#writes.write();
    const groups = await readUsage(this.#stored, query, { days: this.#days, priceOf: this.#priceOf });
    return { groups, currency: this.#currency };
  }

  async series(query: ports.UsageSeriesQuery): Promise<ports.UsageSeriesReport> {
    await this.#writes.write();
    const found = await readSeries(this.#stored, query, { days: this.#days, priceOf: this.#priceOf });
    return { ...found, timeZone: this.timeZone, currency: this.#currency };
  }

  ended(work: ports.EndedWork): void {
    this.#work.add(work);
  }

  async work(query: ports.EndedWorkQuery): Promise<ports.EndedWorkReport> {
    return { ...(await this.#work.read(query)), timeZone: this.timeZone };
  }

  async today(): Promise<ports.UsageDay> {
    this.#turn();
    const { at: since } = this.#day;
    const now = this.#given.clock.now();
    if (this.#others?.since !== since || now - this.#others.readAt >= OTHERS_MS) {
      const tallies = this.#readOthers(since);
      this.#others = { since, readAt: now, tallies };
      // The next call reads again.
      tallies.catch(() => (this.#others = undefined));
    }
    const others = await this.#others.tallies;
    const own = [...this.#day.values()].map(({ subject, counts }) => ({
      subject,
      sums: { ...counts, ...this.#priceOf(subject, since, counts) },
    }));
    return { since, until: this.#days.endOf(since), currency: this.#currency, groups: [...others, ...own] };
  }

  /** Counts of the day by processes that are not this one, also by those that have ended. */
  async #readOthers(since: number): Promise<ports.UsageDay["groups"]> {
    const groups = new Map<string, { subject: ports.UsageSubject; sums: ReturnType<typeof noSums> }>();
    // A day need not begin with an hour of UTC.
    const firstHour = Math.ceil(since / HOUR_MS) * HOUR_MS;
    const parts = [
      storedBetween(this.#stored, "minute", since, firstHour),
      storedBetween(this.#stored, "hour", firstHour, Infinity),
    ];
    for (const part of parts) {
      for await (const row of part) {
        const { subject, at, counts } = row;
        if (row.life === this.#life) continue;
        const key = keyOf(subject);
        const group = groups.get(key) ?? { subject, sums: noSums() };
        groups.set(key, group);
        addSums(group.sums, { ...counts, ...this.#priceOf(subject, at, counts) });
      }
    }
    return [...groups.values()];
  }

  #rowsOf(named: ports.UsageSubject): SubjectRows {
    this.#turn();
    const key = keyOf(named);
    const found = this.#found.get(key);
    if (found) return found;
    const subject = shortened(named);
    const made = { subject, rows: [this.#minute.of(subject), this.#hour.of(subject), this.#day.of(subject)] };
    if (this.#found.size < MOST_SUBJECTS && key.length <= LONGEST_KEY) this.#found.set(key, made);
    return made;
  }

  /** Begins the buckets of the present time. */
  #turn(): void {
    const now = this.#given.clock.now();
    const minute = now - (now % MINUTE_MS);
    if (this.#minute.at === minute) return;
    this.#found = new Map();
    this.#minute = this.#bucket("minute", minute);
    const hour = now - (now % HOUR_MS);
    if (this.#hour.at !== hour) this.#hour = this.#bucket("hour", hour);
    const day = this.#days.startOf(now);
    if (this.#day.at !== day) this.#day = this.#bucket("day", day, MOST_SUBJECTS_OF_DAY);
  }

  #bucket(kind: Row["kind"], at: number, most = MOST_SUBJECTS): Bucket<Row> {
    return new Bucket(at, most, ({ subject, counts }) => {
      const id = `${kind}-${at}-${this.#life}-${++this.#rows}`;
      const latency = noLatency();
      const write = () =>
        this.#stored.write.put(id, { kind, at, life: this.#life, subject, counts: { ...counts }, ...told(latency) });
      return { id, kind, at, subject, counts, latency, write };
    });
  }
}

/** A copy of the parts that have a duration. */
function told({ durations, firstTokens }: Latency): Pick<StoredUsage, "latency"> {
  const [hasDurations, hasFirstTokens] = [durations, firstTokens].map((part) => Object.keys(part).length > 0);
  if (!hasDurations && !hasFirstTokens) return {};
  return {
    latency: { ...(hasDurations && { durations: { ...durations } }), ...(hasFirstTokens && { firstTokens: { ...firstTokens } }) },
  };
}

function whole(tokens: number | undefined): number {
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}

/** Names come from callers, too. */
function shortened(subject: ports.UsageSubject): ports.UsageSubject {
  const named = Object.entries(subject).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(
    named.map(([name, value]) => [name, value.slice(0, LONGEST).toWellFormed().replaceAll("\0", "\uFFFD")]),
  ) as unknown as ports.UsageSubject;
}
