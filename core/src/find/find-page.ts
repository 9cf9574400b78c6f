/** A place in an order by time, newest first: the time (ISO 8601 in UTC, with milliseconds) and the ID of a subject. */
export interface FindPlace {
  readonly at: string;
  readonly id: string;
}

/** One list of subjects, newest first: at most `limit` behind a place. `isLast` says that no more follow. */
export type FindSource = (
  after: FindPlace | undefined,
  limit: number,
) => Promise<{ readonly places: readonly FindPlace[]; readonly isLast: boolean }>;

/** Results, and the place behind which others may follow. */
export interface FoundPage<T> {
  readonly items: readonly T[];
  /** Undefined: there are no more. Otherwise there may be more, also if the page has fewer results than its limit, or none. */
  readonly next: FindPlace | undefined;
}

/** Subjects that one page looks at, besides those that it shows. */
const EXAMINED = 400;
/** Each round reads this many times as much as the one before, up to a limit: most searches need one, and few need many. */
const GROWTH = 4;
const LARGEST_PIECE = 200;

/**
 * The newest subjects that are in all sources and match. The work of one call is bounded, whatever the sources contain: a page may end early,
 * with a place from which the next call goes on.
 *
 * Each round reads a piece of every source, and takes the candidates from the source that reaches furthest back with it: the rarest. A
 * candidate is loaded, and `matches` decides. So sources may be incomplete in what they say, as long as they contain every match.
 */
export async function findPage<T>({
  sources,
  load,
  matches,
  after,
  notBefore,
  limit,
}: {
  /** At least one. */
  readonly sources: readonly FindSource[];
  readonly load: (id: string) => Promise<T | undefined>;
  readonly matches: (found: T) => boolean;
  readonly after?: FindPlace | undefined;
  /** The oldest time of a result (ISO 8601). */
  readonly notBefore?: string | undefined;
  readonly limit: number;
}): Promise<FoundPage<T>> {
  const items: T[] = [];
  let place = after;
  for (let examined = 0, size = limit; examined < limit + EXAMINED; size = Math.min(size * GROWTH, LARGEST_PIECE)) {
    const pieces = await Promise.all(sources.map((source) => source(place, size)));
    const rarest = pieces.reduce((one, other) => (isRarer(other, one) ? other : one));
    const candidates = rarest.places.filter(({ at }) => notBefore === undefined || at >= notBefore);
    const loaded = await Promise.all(
      candidates.map((candidate) => (pieces.every((piece) => mayContain(piece, candidate)) ? load(candidate.id) : undefined)),
    );
    for (const [index, found] of loaded.entries()) {
      place = candidates[index]!;
      if (found !== undefined && matches(found)) items.push(found);
      if (items.length < limit) continue;
      const isEnd = rarest.isLast && index === loaded.length - 1;
      return { items, next: isEnd ? undefined : place };
    }
    if (rarest.isLast || candidates.length < rarest.places.length) return { items, next: undefined };
    examined += candidates.length;
  }
  return { items, next: place };
}

type Piece = Awaited<ReturnType<FindSource>>;

function isRarer(one: Piece, other: Piece): boolean {
  if (one.isLast && other.isLast) return one.places.length < other.places.length;
  return reach(one) < reach(other);
}

/** The time to which a piece reaches: a list that ends reaches to the beginning of time. */
const reach = ({ places, isLast }: Piece): string => (isLast ? "" : places.at(-1)!.at);

/** False if a piece passes the candidate's place without it. */
function mayContain({ places, isLast }: Piece, { at, id }: FindPlace): boolean {
  const last = places.at(-1);
  const isPassed = isLast || (last !== undefined && last.at < at);
  return !isPassed || places.some((place) => place.id === id);
}
