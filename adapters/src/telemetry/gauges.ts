import type { ports } from "@portico/core";
import { firstSeries } from "./series-bound.ts";

/** How long a collection of metrics waits for a gauge. Scrapers usually give up after ten seconds. */
const READ_MS = 1000;

/** A gauge with its present numbers. */
export interface ReadGauge {
  readonly gauge: ports.Gauge;
  readonly values: readonly ports.GaugeValue[];
}

/** The gauges of one app. */
export class Gauges {
  readonly #gauges = new Map<string, ports.Gauge>();

  /** Throws an Error for a name that another gauge has. Returns the function that removes the gauge. */
  add(gauge: ports.Gauge): () => void {
    const { name } = gauge;
    if (this.#gauges.has(name)) throw new Error(`There are two gauges with the name "${name}"`);
    this.#gauges.set(name, gauge);
    return () => {
      // A second call must not remove a later gauge of the same name.
      if (this.#gauges.get(name) === gauge) this.#gauges.delete(name);
    };
  }

  /** Read all gauges at the same time. Never rejects, and takes a second at most. */
  read(): Promise<readonly ReadGauge[]> {
    return Promise.all([...this.#gauges.values()].map(async (gauge) => ({ gauge, values: await readGauge(gauge) })));
  }
}

/** The present numbers of one gauge; none if it throws, or does not answer in a second. Never rejects. */
export async function readGauge(gauge: ports.Gauge): Promise<readonly ports.GaugeValue[]> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), READ_MS);
  try {
    const read = await Promise.race([gauge.read(), late.promise]);
    const values = typeof read === "number" ? [{ labels: {}, value: read }] : (read ?? []);
    return firstSeries(values.filter(isGaugeValue));
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
  }
}

/** A gauge of a plugin may come without types. A value that cannot be written is left out, and not the other ones. */
function isGaugeValue(given: unknown): given is ports.GaugeValue {
  if (typeof given !== "object" || given === null) return false;
  const { labels, value } = given as Partial<ports.GaugeValue>;
  if (!Number.isFinite(value) || typeof labels !== "object" || labels === null) return false;
  return Object.values(labels).every((label: unknown) => typeof label === "string");
}
