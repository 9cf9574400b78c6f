import type { ports, Scope } from "@portico/core";
import type { StoredUsage } from "./read-usage.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const KEEP_MS = { minute: 25 * HOUR_MS, hour: 400 * 24 * HOUR_MS, day: 400 * 24 * HOUR_MS };
const SWEPT_AT_ONCE = 500;

/** A collection of buckets of time. */
export type BucketCollection = ports.Collection<Pick<StoredUsage, "kind" | "at">>;

interface SweepGiven {
  readonly records: ports.Records;
  readonly clock: ports.Clock;
  readonly telemetry: ports.Telemetry;
}

/** Removes expired buckets every hour, until the scope closes. Several processes may do this at the same time. */
export function sweepHourly(given: SweepGiven, collections: readonly BucketCollection[], scope: Scope): void {
  const { clock, telemetry } = given;
  const closing = new AbortController();
  let sweeping: Promise<void> = Promise.resolve();
  const sweep = async () => {
    try {
      for (const collection of collections)
        for (const [kind, keepMs] of Object.entries(KEEP_MS) as [StoredUsage["kind"], number][])
          while (!closing.signal.aborted && (await removeBefore(given, collection, kind, clock.now() - keepMs)));
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

/** Returns whether there may be more. */
async function removeBefore(
  { records }: SweepGiven,
  collection: BucketCollection,
  kind: StoredUsage["kind"],
  before: number,
): Promise<boolean> {
  const { items } = await collection.query({
    where: { kind },
    order: { by: "at", direction: "ascending" },
    limit: SWEPT_AT_ONCE,
  });
  const old = items.filter(({ value }) => value.at < before);
  await records.batch(old.map(({ id }) => collection.write.remove(id)));
  return old.length === SWEPT_AT_ONCE;
}
