/** The clocks of a time zone. A local time is written in milliseconds, as if it were a time in UTC. */
export interface Clocks {
  /** The local time at an instant. */
  shownAt(instant: number): number;
  /** A local time that is not before any that was shown until this instant. */
  latestShownUntil(instant: number): number;
  /** The first instant with a local time. If a change of clocks leaves it out: the end of the gap. */
  firstInstant(local: number): number;
}

/** No offset from UTC, and no change of an offset, is larger. Days were left out at the date line. */
const WIDEST_MS = 26 * 3_600_000;

const zones = new Map<string, Clocks>();
const ZONES_KEPT = 1000;

/** Throws RangeError for a time zone that is not valid. */
export function localClocks(timeZone: string): Clocks {
  const known = zones.get(timeZone);
  if (known) return known;
  const made = createClocks(timeZone);
  if (zones.size >= ZONES_KEPT) zones.clear();
  zones.set(timeZone, made);
  return made;
}

function createClocks(timeZone: string): Clocks {
  const offsetAt = offsetsOf(timeZone);
  const shownAt = (instant: number) => instant + offsetAt(instant);
  return {
    shownAt,
    latestShownUntil: (instant) => instant + Math.max(offsetAt(instant - WIDEST_MS), offsetAt(instant)),
    firstInstant(local) {
      const [before, after] = [offsetAt(local - WIDEST_MS), offsetAt(local + WIDEST_MS)];
      const instants = [local - Math.max(before, after), local - Math.min(before, after)] as const;
      const first = instants.find((instant) => shownAt(instant) === local);
      return first ?? firstShownAfter(local, instants);
    },
  };

  /** The first instant between the two at which the clocks have passed a local time. */
  function firstShownAfter(local: number, [from, to]: readonly [number, number]): number {
    let [early, late] = [from, to];
    while (late - early > 1) {
      const middle = Math.floor((early + late) / 2);
      if (shownAt(middle) < local) early = middle;
      else late = middle;
    }
    return late;
  }
}

/** No zone changes its clocks there and back within this time. */
const PIECE_MS = 7 * 24 * 3_600_000;
const PIECES_KEPT = 500;

/** The offset from UTC at an instant, in milliseconds. Formatting is slow, so that pieces without a change are remembered. */
function offsetsOf(timeZone: string): (instant: number) => number {
  const two = "2-digit";
  const fields = { year: "numeric", month: two, day: two, hour: two, minute: two, second: two, hourCycle: "h23" } as const;
  const format = new Intl.DateTimeFormat("en-US", { timeZone, calendar: "gregory", numberingSystem: "latn", ...fields });
  const formatted = (instant: number): number => {
    const parts = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
    const { year, month, day, hour, minute, second } = parts as Record<string, number>;
    return Date.UTC(year!, month! - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000;
  };
  /** By piece; undefined for a piece with a change. */
  const known = new Map<number, number | undefined>();
  return (instant) => {
    const piece = Math.floor(instant / PIECE_MS);
    if (!known.has(piece)) {
      const offset = formatted(piece * PIECE_MS);
      if (known.size >= PIECES_KEPT) known.clear();
      known.set(piece, offset === formatted((piece + 1) * PIECE_MS) ? offset : undefined);
    }
    return known.get(piece) ?? formatted(instant);
  };
}
