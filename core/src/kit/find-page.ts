import { hash } from "node:crypto";
import * as v from "valibot";
import { maxCharacters } from "./text.ts";

/** A place in an order by time, newest first: the time (ISO 8601 in UTC, with milliseconds) and the ID of a subject. */
export interface FindPlace {
  readonly at: string;
  readonly id: string;
}

/** A place of a source. */
export interface SourcePlace extends FindPlace {
  /** Whether the source knows that the subject does not match the search, so that it is not loaded. */
  readonly isOther?: boolean | undefined;
}

/** The order in which a source is read: towards older subjects, or towards newer ones. */
export type FindOrder = "descending" | "ascending";

/** One list of subjects. */
export interface FindSource {
  /** At most `limit` subjects behind a place, in this order. `isLast` says that no more follow. */
  read(
    after: FindPlace | undefined,
    limit: number,
    order: FindOrder,
  ): Promise<{ readonly places: readonly SourcePlace[]; readonly isLast: boolean }>;
  /** Those of these subjects that are in the list. */
  having(ids: readonly string[]): Promise<ReadonlySet<string>>;
}

/** Results, newest first, and the places from which the pages beside them begin. */
export interface FoundPage<T> {
  readonly items: readonly T[];
  /**
   * `after` of the page with older subjects. Undefined: no older ones exist. Otherwise there may be some, also if this page has fewer results than
   * its limit, or none.
   */
  readonly next: FindPlace | undefined;
  /** `before` of the page with newer subjects, likewise. Undefined for a search that begins with the newest. */
  readonly previous: FindPlace | undefined;
}

/** Subjects that one page looks at, besides those that it shows. */
const EXAMINED = 48;
/** Each round reads this many times as much as the one before, up to what the page may still look at: most searches need one round. */
const GROWTH = 4;
/** Before and behind all times of subjects. */
const BEGINNING = "1970-01-01T00:00:00.000Z";
const END = "9999-12-31T23:59:59.999Z";

/**
 * The newest subjects that are in all sources and match, or those that come next behind or before a place. The work of one call is bounded,
 * whatever the sources contain: a page may end early, with a place from which the next call goes on.
 *
 * The first round reads a piece of every source, and takes the candidates from the source that reaches furthest with it: the rarest. A candidate
 * is loaded, and `matches` decides. If few of them match, the next rounds read this source alone, and ask the others for each candidate before
 * it is loaded. So sources may contain more than what matches, as long as they contain every match.
 */
export async function findPage<T>({
  after,
  before,
  notBefore,
  until,
  ...search
}: FindSearch<T> & {
  /** The page has the next older subjects behind this place. */
  readonly after?: FindPlace | undefined;
  /** The page has the next newer subjects before this place. Not together with `after`. */
  readonly before?: FindPlace | undefined;
  /** The oldest time of a result (ISO 8601). */
  readonly notBefore?: string | undefined;
  /** Results are older than this time (ISO 8601). */
  readonly until?: string | undefined;
}): Promise<FoundPage<T>> {
  const oldest = { at: notBefore ?? BEGINNING, id: "" };
  const newest = { at: until ?? END, id: "" };
  if (before) {
    const isWithin = (place: FindPlace) => until === undefined || place.at < until;
    const { items, first, last } = await findAlong(search, { order: "ascending", from: before, isWithin });
    return { items: items.reverse(), next: first ?? last ?? newest, previous: last };
  }
  const isWithin = (place: FindPlace) => notBefore === undefined || place.at >= notBefore;
  const from = after ?? (until === undefined ? undefined : newest);
  const { items, first, last } = await findAlong(search, { order: "descending", from, isWithin });
  return { items, next: last, previous: after && (first ?? last ?? oldest) };
}

interface FindSearch<T> {
  /** At least one. */
  readonly sources: readonly FindSource[];
  readonly load: (id: string) => Promise<T | undefined>;
  readonly matches: (found: T) => boolean;
  readonly limit: number;
}

interface FindWay {
  readonly order: FindOrder;
  readonly from: FindPlace | undefined;
  /** False behind the last place of the search. */
  readonly isWithin: (place: FindPlace) => boolean;
}

/** Results in an order. `first`: the place of the first one. `last`: the place from which the next page goes on, if there may be more. */
async function findAlong<T>(
  { sources, load, matches, limit }: FindSearch<T>,
  { order, from, isWithin }: FindWay,
): Promise<{ readonly items: T[]; readonly first: FindPlace | undefined; readonly last: FindPlace | undefined }> {
  const items: T[] = [];
  let first: FindPlace | undefined;
  let place = from;
  let lead: FindSource | undefined;
  for (let left = limit + EXAMINED, size = limit; left > 0; size = Math.min(size * GROWTH, left)) {
    const isFirst = lead === undefined;
    const pieces = await Promise.all((lead ? [lead] : sources).map((source) => source.read(place, size, order)));
    const rarest = pieces.reduce((one, other) => (isRarer(other, one, order) ? other : one));
    lead ??= sources[pieces.indexOf(rarest)]!;
    const candidates = rarest.places.filter(isWithin);
    const likely = isFirst
      ? candidates.filter((candidate) => !candidate.isOther && pieces.every((piece) => mayContain(piece, candidate, order)))
      : await inAll(
          sources.filter((source) => source !== lead),
          candidates.filter(({ isOther }) => !isOther),
        );
    const loaded = new Map(await Promise.all(likely.map(async ({ id }) => [id, await load(id)] as const)));
    for (const [index, candidate] of candidates.entries()) {
      place = candidate;
      const found = loaded.get(candidate.id);
      if (found !== undefined && matches(found)) {
        items.push(found);
        first ??= place;
      }
      if (items.length < limit) continue;
      const isEnd = rarest.isLast && index === candidates.length - 1;
      return { items, first, last: isEnd ? undefined : place };
    }
    if (rarest.isLast || candidates.length < rarest.places.length) return { items, first, last: undefined };
    left -= candidates.length;
  }
  return { items, first, last: place };
}

/** The candidates that all sources have. */
async function inAll(sources: readonly FindSource[], candidates: readonly SourcePlace[]): Promise<readonly SourcePlace[]> {
  let left = candidates;
  for (const source of sources) {
    if (left.length === 0) return left;
    const had = await source.having(left.map(({ id }) => id));
    left = left.filter(({ id }) => had.has(id));
  }
  return left;
}

type Piece = Awaited<ReturnType<FindSource["read"]>>;

function isRarer(one: Piece, other: Piece, order: FindOrder): boolean {
  if (one.isLast || other.isLast) return one.isLast && (!other.isLast || one.places.length < other.places.length);
  return isFurther(one.places.at(-1)!, other.places.at(-1)!, order);
}

/** Whether a place has a time further along the order. */
const isFurther = (one: FindPlace, other: FindPlace, order: FindOrder): boolean =>
  order === "descending" ? one.at < other.at : one.at > other.at;

/** False if a piece passes the candidate's place without it. */
function mayContain({ places, isLast }: Piece, candidate: FindPlace, order: FindOrder): boolean {
  const last = places.at(-1);
  const isPassed = isLast || (last !== undefined && isFurther(last, candidate, order));
  return !isPassed || places.some((place) => place.id === candidate.id);
}

/** Characters of a cursor: more than any has. */
const CURSOR_CHARACTERS = 1024;
const parts = v.strictTuple([
  v.string(),
  v.pipe(v.string(), v.isoTimestamp()),
  v.pipe(v.string(), maxCharacters(256), v.regex(/^[A-Za-z0-9_-]*$/)),
]);

/**
 * A text from which the same search continues after a place. It stays valid while subjects are added and removed. `asked` is everything that
 * the search asks, in any form that is equal for equal searches.
 */
export function toFindCursor(asked: string, { at, id }: FindPlace): string {
  return Buffer.from(JSON.stringify([tagOf(asked), at, id])).toString("base64url");
}

/** The place of a cursor, which may have an empty ID. Undefined for an invalid cursor, and for one of another search. IDs are letters, digits, `_` and `-`. */
export function readFindCursor(asked: string, cursor: string): FindPlace | undefined {
  if (cursor.length > CURSOR_CHARACTERS) return undefined;
  const bytes = Buffer.from(cursor, "base64url");
  if (bytes.toString("base64url") !== cursor) return undefined;
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), parts), bytes.toString());
  if (!parsed.success) return undefined;
  const [tag, at, id] = parsed.output;
  return tag === tagOf(asked) ? { at, id } : undefined;
}

function tagOf(asked: string): string {
  return hash("sha256", asked, "base64url").slice(0, 12);
}

/** Characters of one word. Longer words are cut. */
const WORD_CHARACTERS = 40;
/** Characters of a text that are looked at, for each word that is wanted. */
const TEXT_CHARACTERS = 200;
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ASCII = /^[\0-\x7f]*$/;
const ASCII_WORD = /[a-z0-9]+/g;
/** Scripts that write no spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;

/**
 * The different words of a text, at most this many, in their order: sequences of letters and digits in lower case, without regard to the
 * form of their characters (NFKC). In scripts that write no spaces, each pair of neighbouring characters is a word.
 */
export function wordsOf(text: string, most: number): readonly string[] {
  const begin = text.slice(0, most * TEXT_CHARACTERS);
  // The same words in a fraction of the time. Searches ask for the words of each run that they look at.
  if (ASCII.test(begin)) return asciiWords(begin.toLowerCase(), most);
  const words = new Set<string>();
  const normal = begin.toWellFormed().normalize("NFKC").toLowerCase().normalize("NFKC");
  for (const [found] of normal.matchAll(WORD)) {
    for (const word of split(found)) {
      if (words.size >= most) return [...words];
      words.add(word);
    }
  }
  return [...words];
}

function asciiWords(normal: string, most: number): readonly string[] {
  const words = new Set<string>();
  for (const word of normal.match(ASCII_WORD) ?? []) {
    if (words.size >= most) break;
    words.add(word.slice(0, WORD_CHARACTERS));
  }
  return [...words];
}

function* split(found: string): Generator<string, void> {
  let from = 0;
  for (const { 0: unspaced, index } of found.matchAll(UNSPACED)) {
    if (index > from) yield cut(found.slice(from, index));
    yield* pairs([...unspaced]);
    from = index + unspaced.length;
  }
  if (from < found.length) yield cut(found.slice(from));
}

/** Without half a character at its end. */
const cut = (word: string): string => word.slice(0, WORD_CHARACTERS).replace(/[\uD800-\uDBFF]$/, "");

function* pairs(characters: readonly string[]): Generator<string, void> {
  if (characters.length === 1) yield characters[0]!;
  for (let at = 1; at < characters.length; at++) yield characters[at - 1]! + characters[at]!;
}
