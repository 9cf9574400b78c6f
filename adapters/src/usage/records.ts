import { defineAdapter, ports, retryWhileStoreAway, type Scope } from "@portico/core";
import { daysOf } from "./records/day.ts";
import { addDuration, type Latency, noLatency } from "./records/latency.ts";
import { createPriceOf, type PriceTable } from "./records/prices.ts";
import { readSeries } from "./records/read-series.ts";
import { addSums, countsOf, noSums, readUsage, type StoredUsage, storedBetween } from "./records/read-usage.ts";
import { Bucket, keyOf, noCounts, type Tally } from "./records/tally.ts";

export { type ModelPrice, type PriceTable, pricesAt } from "./records/prices.ts";

/** Options of `recordUsage`. */
export interface RecordUsageOptions {
  /** IANA time zone of days and daily limits. Default: `UTC`. */
  readonly timeZone?: string | undefined;
  /** Default: no prices, and so no costs. */
  readonly prices?: PriceTable | undefined;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FLUSH_MS = 1000;
/** How old the counts of other processes may be that limits see, in addition to the second in which they write them. */
const OTHERS_MS = 4000;
const KEEP_MS = { minute: 25 * HOUR_MS, hour: 400 * 24 * HOUR_MS, day: 400 * 24 * HOUR_MS };
/** Subjects per bucket in one process. */
const MOST_SUBJECTS = 1000;
/** The same of the current day. Limits of a day need more of them. */
const MOST_SUBJECTS_OF_DAY = 10_000;
const WRITES_AT_ONCE = 500;
const SWEPT_AT_ONCE = 500;
const LONGEST = 256;

interface Row extends Tally {
  readonly id: string;
  readonly kind: StoredUsage["kind"];
  readonly at: number;
  readonly latency: Latency;
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
  readonly #timeZone: string;
  readonly #days: ReturnType<typeof daysOf>;
  readonly #priceOf: ReturnType<typeof createPriceOf>;
  readonly #currency: string | undefined;
  readonly #changed = new Set<Row>();
  #rows = 0;
  #minute: Bucket<Row>;
  #hour: Bucket<Row>;
  #day: Bucket<Row>;
  #timer: ports.Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #hasFailed = false;
  #isClosed = false;
  #others: { readonly since: number; readonly readAt: number; readonly tallies: Promise<ports.UsageDay["groups"]> } | undefined;

  constructor(given: Given, { timeZone = "UTC", prices }: RecordUsageOptions, scope: Scope) {
    this.#given = given;
    this.#stored = given.records.collection<StoredUsage>({ name: "usage", indexes: { byTime: ["kind", "at"] } });
    this.#life = given.ids.id("");
    this.#timeZone = timeZone;
    this.#days = daysOf(timeZone);
    this.#priceOf = createPriceOf(prices);
    this.#currency = prices?.currency;
    const now = given.clock.now();
    this.#minute = this.#bucket("minute", now - (now % MINUTE_MS));
    this.#hour = this.#bucket("hour", now - (now % HOUR_MS));
    this.#day = this.#bucket("day", this.#days.startOf(now), MOST_SUBJECTS_OF_DAY);
    scope.onClose(async () => {
      this.#isClosed = true;
      this.#timer?.cancel();
      await this.#write().catch((error: unknown) => this.#tell(error));
    });
    this.#sweepHourly(scope);
  }

  async begin(subject: ports.UsageSubject, signal: AbortSignal): Promise<ports.UsageCall> {
    const call = this.note(subject);
    await retryWhileStoreAway({ clock: this.#given.clock, signal }, () => this.#write());
    return call;
  }

  note(named: ports.UsageSubject): ports.UsageCall {
    const subject = shortened(named);
    this.#turn();
    const rows = [this.#minute.of(subject), this.#hour.of(subject), this.#day.of(subject)];
    const counts = rows.map((row) => row.counts);
    for (const count of counts) {
      count.calls++;
      count.unknown++;
    }
    this.#mark(rows);
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
        for (const count of counts) {
          if (isRefused) count.refused++;
          if (isFailed) count.failed++;
          if (isKnown) count.unknown--;
          for (const name of Object.keys(tokens) as (keyof typeof tokens)[]) count[name] += tokens[name];
        }
        for (const { latency } of rows) {
          if (!isFailed) addDuration(latency.durations, more.durationMs);
          addDuration(latency.firstTokens, more.firstTokenMs);
        }
        this.#mark(rows);
        if (!isReported || this.#currency === undefined) return undefined;
        const { cost, unpriced } = this.#priceOf(subject, at, { ...noCounts(), ...tokens, calls: 1 });
        return unpriced > 0 ? undefined : { cost, currency: this.#currency };
      },
    };
  }

  async read(query: ports.UsageQuery): Promise<ports.UsageReport> {
    await this.#write();
    const groups = await readUsage(this.#stored, query, { days: this.#days, priceOf: this.#priceOf });
    return { groups, currency: this.#currency };
  }

  async series(query: ports.UsageSeriesQuery): Promise<ports.UsageSeriesReport> {
    await this.#write();
    const found = await readSeries(this.#stored, query, { days: this.#days, priceOf: this.#priceOf });
    return { ...found, timeZone: this.#timeZone, currency: this.#currency };
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
    return { since, until: this.#days.endOf(since), groups: [...others, ...own] };
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
        const { subject, at } = row;
        if (row.life === this.#life) continue;
        const counts = countsOf(row);
        const key = keyOf(subject);
        const group = groups.get(key) ?? { subject, sums: noSums() };
        groups.set(key, group);
        addSums(group.sums, { ...counts, ...this.#priceOf(subject, at, counts) });
      }
    }
    return [...groups.values()];
  }

  /** Begins the buckets of the present time. */
  #turn(): void {
    const now = this.#given.clock.now();
    const minute = now - (now % MINUTE_MS);
    if (this.#minute.at === minute) return;
    this.#minute = this.#bucket("minute", minute);
    const hour = now - (now % HOUR_MS);
    if (this.#hour.at !== hour) this.#hour = this.#bucket("hour", hour);
    const day = this.#days.startOf(now);
    if (this.#day.at !== day) this.#day = this.#bucket("day", day, MOST_SUBJECTS_OF_DAY);
  }

  #bucket(kind: Row["kind"], at: number, most = MOST_SUBJECTS): Bucket<Row> {
    return new Bucket(at, most, (tally) => ({
      ...tally,
      kind,
      at,
      latency: noLatency(),
      id: `${kind}-${at}-${this.#life}-${++this.#rows}`,
    }));
  }

  #mark(rows: readonly Row[]): void {
    for (const row of rows) this.#changed.add(row);
    if (this.#isClosed) return;
    this.#timer ??= this.#given.clock.after(FLUSH_MS, () => {
      this.#timer = undefined;
      this.#write().catch((error: unknown) => {
        this.#tell(error);
        this.#mark([]);
      });
    });
  }

  /** Resolves when all present counts are durable. Calls of one moment share a commit; a commit that has begun may lack the present. */
  #write(): Promise<void> {
    this.#next ??= this.#writing
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#writing = this.#writeChanged();
        return this.#writing;
      });
    return this.#next;
  }

  /** Writes what has changed until now. What changes meanwhile is the next write's: under load, this one would never end. */
  async #writeChanged(): Promise<void> {
    const changed = [...this.#changed];
    this.#changed.clear();
    for (let from = 0; from < changed.length; from += WRITES_AT_ONCE) {
      const rows = changed.slice(from, from + WRITES_AT_ONCE);
      const writes = rows.map(({ id, kind, at, subject, counts, latency }) =>
        this.#stored.write.put(id, { kind, at, life: this.#life, subject, counts: { ...counts }, ...told(latency) }),
      );
      try {
        await this.#given.records.batch(writes);
        this.#hasFailed = false;
      } catch (error) {
        for (const row of changed.slice(from)) this.#changed.add(row);
        throw error;
      }
    }
  }

  #tell(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#given.telemetry.log.warn("The usage of model calls could not be stored", {}, error);
  }

  #sweepHourly(scope: Scope): void {
    const { clock, telemetry } = this.#given;
    const closing = new AbortController();
    let sweeping: Promise<void> = Promise.resolve();
    const sweep = async () => {
      try {
        for (const [kind, keepMs] of Object.entries(KEEP_MS) as [Row["kind"], number][])
          while (!closing.signal.aborted && (await this.#removeBefore(kind, clock.now() - keepMs)));
      } catch (error) {
        if (!closing.signal.aborted) telemetry.log.warn("Old counts of usage could not be removed", {}, error);
      }
    };
    const next = (ms: number): ports.Timer =>
      clock.after(ms, () => {
        sweeping = sweep();
        timer = next(HOUR_MS);
      });
    let timer = next(MINUTE_MS);
    scope.onClose(async () => {
      closing.abort();
      timer.cancel();
      await sweeping;
    });
  }

  /** Returns whether there may be more. Several processes may do this at the same time. */
  async #removeBefore(kind: StoredUsage["kind"], before: number): Promise<boolean> {
    const { items } = await this.#stored.query({
      where: { kind },
      order: { by: "at", direction: "ascending" },
      limit: SWEPT_AT_ONCE,
    });
    const old = items.filter(({ value }) => value.at < before);
    await this.#given.records.batch(old.map(({ id }) => this.#stored.write.remove(id)));
    return old.length === SWEPT_AT_ONCE;
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
